/* request_audit_int.h - which requests leave a line in the audit log, and what it says.
 *
 * request_authorise, which every request passes, decides and keeps what is gone when a deferred
 * answer is given; response_send, which every answer passes, posts the line. Between the two a
 * handler may name the resource that is changed. All of this does nothing without --audit.
 */
#pragma once

#include "api/core/audit.h"
#include "api/core/request_int.h"

/* Notes the request if it was refused, or asks for a change of the control plane. */
void request_audit_begin(ApiRequest *r, bool is_authorised);

/* The resource that is changed. The slices are copied; an empty one says nothing new. */
void request_audit_subject(ApiRequest *r, Slice id, Slice rid);

/* The request turns out to change nothing, so that it needs no line. */
void request_audit_forget(ApiRequest *r);

/* Posts the line, if the request has one. */
void request_audit_end(ApiRequest *r, int status, uint32_t sub_status);
