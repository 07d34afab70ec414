/* sql_print_int.h - a tree as the text of a query again.
 *
 * Operators are put in parentheses, so that the text shows how they were understood, and it means
 * the same to any parser of the language. What was inferred (names of results, what group keys have
 * replaced) is not printed: print before binding.
 */
#pragma once

#include "query/sql/ast_int.h"

void print_node(const Node *node, Buf *out);
void print_select(const Select *select, Buf *out);
void print_select_lines(const Select *select, Buf *out); /* a clause a line */
