/* progress.h - how far an import or export is, for people: a bar on a terminal, lines elsewhere.
 *
 *     [=======>            ]  36%  36,102 items  8,412/s  52,300 RU/s  12 throttled  0:07 left
 *
 * Everything goes to standard error.
 *
 * Threads    Belongs to one thread. Time is passed in.
 */
#pragma once

#include "base/buf.h"
#include "base/defs.h"

typedef struct ProgressNow {
    uint64_t items;
    uint64_t done;  /* of 'total': bytes, or whatever tells how much is left */
    uint64_t total; /* 0 if that is not known */
    double ru;
    uint64_t throttled;
    uint64_t rejected;
    uint64_t silent_us; /* for how long a server has not answered what it was asked; 0 if not */
} ProgressNow;

typedef struct Progress {
    bool is_terminal;
    bool is_quiet;
    uint64_t begun_us;
    uint64_t shown_us;  /* when it was last shown */
    ProgressNow before; /* what was shown then, for the rates */
    double items_per_s; /* smoothed */
    double ru_per_s;
    bool has_line; /* a bar is on the screen */
} Progress;

void progress_init(Progress *progress, bool is_quiet, uint64_t now_us);

/* Shows the state if it is time to: five times a second on a terminal, else every ten seconds. */
void progress_show(Progress *progress, const ProgressNow *now, uint64_t now_us);

/* Removes the bar, so that other text can follow. */
void progress_clear(Progress *progress);

/* The text of one state, without a line end; at most 'width' characters. */
void progress_print(const Progress *progress, const ProgressNow *now, uint64_t now_us, size_t width,
                    Buf *out);

/* A number with commas between thousands. */
void progress_print_count(uint64_t count, Buf *out);
