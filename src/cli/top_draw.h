/* top_draw.h - one frame of `orrery top`: from what is known to lines of text.
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
#define TOP_DRAW_RIGHT_CELLS 22 /* and behind them */

typedef struct TopCanvas {
    uint32_t width;
    uint32_t height; /* 0: as many lines as there is to say */
    bool has_colour; /* 256 colours, by escape sequences; otherwise characters only */
    bool is_utf8;    /* printable characters beyond ASCII are drawn as they are */
} TopCanvas;

/* How many seconds the map of a canvas shows. */
uint32_t top_draw_columns(const TopCanvas *canvas);

/* 'note' is a line at the end, such as what went wrong; it may be empty. Lines are separated by
 * "\n", or "\r\n" with each line wiped to its end if there is colour. */
void top_draw(const TopModel *model, const TopCanvas *canvas, Slice note, Buf *out);

/* Text of a stranger, cut to 'width' columns and made harmless; how many columns it takes. */
uint32_t top_draw_text(Slice text, uint32_t width, bool is_utf8, Buf *out);
