/* service_notify.h - tells the service manager, which is systemd or something like it, how the
 * server is. The protocol is a datagram of lines such as READY=1 to the socket that the variable
 * NOTIFY_SOCKET names; a library is not needed for that. */
#pragma once

#include "base/defs.h"

/* The socket of 'environment', a list like environ; NULL if no service manager waits. */
const char *service_notify_socket(char *const *environment);

/* Sends 'text' to 'socket_name', which may be NULL. Returns whether it was sent. A failure is not
 * worth more than that: the manager has a time limit of its own. */
bool service_notify(const char *socket_name, const char *text);
