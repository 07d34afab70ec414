/* top_draw.h - one frame of `orrery top`: a model as lines of text.
 *
 * A frame has as many lines as the terminal, at most, and none is wider than it. Nothing that a
 * server or a client has chosen reaches the terminal as it is: what is not printable is written as
 * JSON escapes it.
 */
#pragma once

#include "base/buf.h"
#include "cli/top_model.h"

#define TOP_FRAME_BYTES_MAX  ((size_t)1 << 20)
#define TOP_DRAW_WIDTH_MIN   40
#define TOP_DRAW_WIDTH_MAX   1000
#define TOP_DRAW_HEIGHT_MIN  10
#define TOP_DRAW_HEIGHT_MAX  1000
#define TOP_DRAW_LEFT_CELLS  20 /* columns of a line of the map in front of its cells */
#define TOP_DRAW_RIGHT_CELLS 22 /* and to the right of them */

typedef struct TopCanvas {
    uint32_t width;
    uint32_t height; /* 0 for as many lines as needed */
    bool has_colour; /* 256 colours, by escape sequences; otherwise characters only */
    bool is_utf8;    /* printable characters beyond ASCII are drawn as they are */
    bool has_owners; /* each line of the map names the node that serves it */
} TopCanvas;

/* How many seconds the map of a canvas shows. */
uint32_t top_draw_columns(const TopCanvas *canvas);

/* 'note' is a line at the end, such as what went wrong; it may be empty. Lines are separated by
 * "\n", or "\r\n" with each line wiped to its end if there is colour. */
void top_draw(const TopModel *model, const TopCanvas *canvas, Slice note, Buf *out);

/* Draws text of unknown origin, cut to 'width' columns and made harmless. Returns its columns. */
uint32_t top_draw_text(Slice text, uint32_t width, bool is_utf8, Buf *out);
