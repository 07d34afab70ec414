/* value_terms_int.h - values as bytes in the order of values, as the index has them. */
#pragma once

#include "base/buf.h"
#include "query/sql/value_int.h"

/* Appends the encoded value as the index has it; '*exact' becomes false if it stands for others,
 * too. */
void value_put_term(Buf *out, const Value *value, bool *exact);

/* Appends up to 'max' bytes of a text in the order of texts; a term has fewer of them. */
void value_put_text(Buf *out, Slice text, size_t max);
