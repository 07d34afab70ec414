/* top_draw.c - see top_draw.h.
 *
 *     orrery top - shop/orders                         2023-11-14 22:13:20 UTC
 *     ...
 *        part  hash from  -30s                       now     RU/s  peak    429
 *           0  -                               .:-=+#@XX      400  100%     12
 *           1  1FFFFFFF                            B....     20.5   12%      0
 *
 * Each line of the map is a physical partition, or several neighbours if there are more of them
 * than lines; each cell is a second, the newest at the right.
 */
#include "cli/top_draw.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <wchar.h>

enum {
    KEYS_SHOWN_MAX = 10,
    MOVES_SHOWN_MAX = 3,
    NODES_SHOWN_MAX = 9,
    OWNER_CELLS = 10,     /* to the right of the numbers: a blank and a node's name */
    MOVES_LINES_MIN = 16, /* of a screen that has room for them */
    MAP_LINES_MAX = 64,   /* where the height has no bound */
    NARROW = 62,          /* columns; a narrower frame has no numbers to the right of the map */
    LEVELS = 10,          /* of shade; one more for use above the allotment */
    FIXED_LINES = 7,      /* heading, titles, legend and note */
    SECTION_LINES = 2,    /* a blank line and the title above a list of keys */
};

static const char SHADES[LEVELS + 2] = " .:-=+*#%@B";
static const uint8_t COLOURS[LEVELS + 1] = {235, 17, 19, 26, 38, 71, 142, 178, 208, 196, 201};

/* Where the next character goes. Nothing is drawn beyond the width, nor below the height. */
typedef struct Pen {
    const TopCanvas *canvas;
    Buf *out;
    uint32_t column;
    uint32_t line;
} Pen;

static bool is_below(const Pen *pen)
{
    return pen->canvas->height > 0 && pen->line >= pen->canvas->height;
}

static uint32_t room(const Pen *pen)
{
    return is_below(pen) || pen->column >= pen->canvas->width ? 0
                                                              : pen->canvas->width - pen->column;
}

static void pen_text(Pen *pen, Slice text, uint32_t width_max)
{
    uint32_t width = room(pen) < width_max ? room(pen) : width_max;
    pen->column += top_draw_text(text, width, pen->canvas->is_utf8, pen->out);
}

/* Draws our own text; text of others goes through pen_text. */
PRINTF_LIKE(2, 3) static void pen_format(Pen *pen, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    size_t cut = len < 0 ? 0 : (size_t)len < sizeof(text) ? (size_t)len : sizeof(text) - 1;
    cut = cut < room(pen) ? cut : room(pen);
    buf_bytes(pen->out, text, cut);
    pen->column += (uint32_t)cut;
}

static void pen_to(Pen *pen, uint32_t column)
{
    while (pen->column < column && room(pen) > 0)
        pen_format(pen, " ");
}

static void pen_end(Pen *pen)
{
    if (!is_below(pen)) {
        bool is_last = pen->canvas->height > 0 && pen->line + 1 == pen->canvas->height;
        if (pen->canvas->has_colour)
            buf_slice(pen->out, SLICE("\033[K"));
        if (!is_last) /* it would scroll */
            buf_slice(pen->out, pen->canvas->has_colour ? SLICE("\r\n") : SLICE("\n"));
    }
    pen->line++;
    pen->column = 0;
}

/* ---- texts of others ---- */

/* The code point at the start of 'text', which is not empty, and how many bytes it has. What is not
 * UTF-8 is a replacement character. */
static uint32_t next_point(Slice text, size_t *len)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    uint8_t first = (uint8_t)text.ptr[0];
    *len = first < 0x80 ? 1 : first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC0 ? 2 : 0;
    if (*len == 1)
        return first;
    if (*len == 0 || *len > text.len) {
        *len = 1;
        return 0xFFFD;
    }
    uint32_t point = first & (0x7Fu >> *len);
    for (size_t i = 1; i < *len; i++) {
        uint8_t byte = (uint8_t)text.ptr[i];
        if ((byte & 0xC0) != 0x80) {
            *len = 1;
            return 0xFFFD;
        }
        point = point << 6 | (byte & 0x3F);
    }
    if (point >= least[*len] && point <= 0x10FFFF && (point < 0xD800 || point > 0xDFFF))
        return point;
    *len = 1;
    return 0xFFFD;
}

/* How a code point is drawn, and how many columns that takes. A code point without a width could
 * hide text, reverse it or begin a command to the terminal, so it is escaped. */
static uint32_t print_point(uint32_t point, Slice bytes, bool is_utf8, char out[16], size_t *len)
{
    int width = point >= 0x20 && point < 0x7F ? 1 : 0;
    if (point >= 0xA0 && is_utf8 && bytes.len > 1)
        width = wcwidth((wchar_t)point);
    if (width > 0) {
        memcpy(out, bytes.ptr, bytes.len);
        *len = bytes.len;
        return (uint32_t)width;
    }
    int escaped = point > 0xFFFF
                      ? snprintf(out, 16, "\\u%04x\\u%04x", 0xD800 + ((point - 0x10000) >> 10),
                                 0xDC00 + ((point - 0x10000) & 0x3FF))
                      : snprintf(out, 16, "\\u%04x", point);
    *len = (size_t)escaped;
    return (uint32_t)escaped;
}

/* Draws as much as fits; false if that is not all. */
static bool draw_points(Slice text, uint32_t width, bool is_utf8, Buf *out, uint32_t *used)
{
    *used = 0;
    while (text.len > 0) {
        size_t bytes = 0;
        uint32_t point = next_point(text, &bytes);
        char drawn[16];
        size_t len = 0;
        uint32_t columns = print_point(point, slice_first(text, bytes), is_utf8, drawn, &len);
        if (*used + columns > width)
            return false;
        buf_bytes(out, drawn, len);
        *used += columns;
        text = slice_from(text, bytes);
    }
    return true;
}

uint32_t top_draw_text(Slice text, uint32_t width, bool is_utf8, Buf *out)
{
    uint32_t used = 0;
    size_t begin = out->len;
    if (width == 0 || draw_points(text, width, is_utf8, out, &used))
        return used;
    out->len = begin;
    (void)draw_points(text, width - 1, is_utf8, out, &used);
    buf_byte(out, '~'); /* there is more */
    return used + 1;
}

/* ---- numbers ---- */

typedef struct NumberText {
    char text[40];
} NumberText;

/* 1,234,567; small numbers that are not whole have one decimal. */
static NumberText count_text(double number)
{
    char plain[32];
    bool has_tenths = number < 100 && number != floor(number);
    (void)snprintf(plain, sizeof(plain), "%.*f", has_tenths ? 1 : 0, number);
    size_t whole = strcspn(plain, ".");
    NumberText out;
    size_t at = 0;
    for (size_t i = 0; plain[i] != '\0'; i++) {
        if (i > 0 && i < whole && (whole - i) % 3 == 0)
            out.text[at++] = ',';
        out.text[at++] = plain[i];
    }
    out.text[at] = '\0';
    return out;
}

static NumberText bytes_text(double bytes)
{
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
    size_t unit = 0;
    for (; bytes >= 1024 && unit + 1 < ARRAY_COUNT(units); unit++)
        bytes /= 1024;
    NumberText out;
    (void)snprintf(out.text, sizeof(out.text), "%.*f %s", unit > 0 && bytes < 100 ? 1 : 0, bytes,
                   units[unit]);
    return out;
}

static const char *plural(double number)
{
    return number == 1 ? "" : "s";
}

static double percent_of(double part, double whole)
{
    double percent = whole > 0 ? part * 100 / whole : 0;
    return percent < 9999 ? percent : 9999;
}

/* ---- the heading ---- */

static void draw_title(Pen *pen, const TopModel *model)
{
    char date[32] = "";
    struct tm parts;
    time_t time_s = (time_t)model->time_s;
    if (pen->canvas->width >= NARROW && gmtime_r(&time_s, &parts) != NULL)
        (void)strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S UTC", &parts);
    uint32_t width = pen->canvas->width;
    uint32_t date_at = width > strlen(date) ? width - (uint32_t)strlen(date) : 0;
    pen_format(pen, "orrery top - ");
    uint32_t names = date_at > pen->column + 4 ? date_at - pen->column - 2 : 0;
    pen_text(pen, model->database, names / 2);
    pen_format(pen, "/");
    pen_text(pen, model->container, names > 0 ? names - names / 2 - 1 : 0);
    if (date[0] != '\0')
        pen_to(pen, date_at);
    pen_format(pen, "%s", date);
    pen_end(pen);
}

static void draw_size(Pen *pen, const TopModel *model)
{
    double items = 0;
    double bytes = 0;
    for (size_t i = 0; i < model->range_count; i++) {
        items += model->ranges[i].items;
        bytes += model->ranges[i].bytes;
    }
    pen_text(pen, model->mode, 16);
    if (model->ru > 0)
        pen_format(pen, " %s RU/s%s", count_text(model->ru).text,
                   model->is_shared ? " shared in the database" : "");
    pen_format(pen, ", %zu partition%s, %s item%s, %s", model->range_count,
               plural((double)model->range_count), count_text(items).text, plural(items),
               bytes_text(bytes).text);
    if (model->logical >= 0)
        pen_format(pen, ", %s%s key%s", model->is_logical_estimate ? "about " : "",
                   count_text(model->logical).text, plural(model->logical));
    if (model->missing_count > 0)
        pen_format(pen, "; of %zu nothing is known now", model->missing_count);
    pen_end(pen);
}

static void draw_use(Pen *pen, const TopModel *model)
{
    TopRange sum = {0};
    for (size_t i = 0; i < model->range_count; i++) {
        const TopRange *range = &model->ranges[i];
        sum.ru_allotted += range->ru_allotted;
        sum.ru_second += range->ru_second;
        sum.ru_minute += range->ru_minute;
        sum.requests_minute += range->requests_minute;
        sum.throttled_minute += range->throttled_minute;
    }
    pen_format(pen, "now %s RU/s", count_text(sum.ru_second).text);
    if (sum.ru_allotted > 0)
        pen_format(pen, " (%.0f%%)", percent_of(sum.ru_second, sum.ru_allotted));
    pen_format(pen, ", last minute %s RU, %s requests, %s throttled",
               count_text(sum.ru_minute).text, count_text(sum.requests_minute).text,
               count_text(sum.throttled_minute).text);
    pen_end(pen);
}

/* ---- splits and merges ---- */

/* "split 0 into 1, 2 (throughput): copying, 45% of 12.0 MB" */
static void draw_move(Pen *pen, const TopMove *move)
{
    pen_text(pen, move->what, 10);
    pen_format(pen, " ");
    pen_text(pen, move->sources, 24);
    if (move->targets.len > 0) {
        pen_format(pen, " into ");
        pen_text(pen, move->targets, 24);
    }
    pen_format(pen, " (");
    pen_text(pen, move->reason, 16);
    pen_format(pen, "): ");
    pen_text(pen, move->stage, 16);
    if (move->message.len > 0) {
        pen_format(pen, ": ");
        pen_text(pen, move->message, UINT32_MAX);
    } else if (move->ended_s > 0) {
        pen_format(pen, ", %s, writes waited %.1f ms", bytes_text(move->bytes_total).text,
                   move->fence_us / 1000);
    } else {
        pen_format(pen, ", %.0f%% of %s", move->percent, bytes_text(move->bytes_total).text);
    }
}

/* The oldest move that has not ended, NULL if there is none. */
static void draw_current(Pen *pen, const TopModel *model)
{
    const TopMove *current = NULL;
    for (size_t i = 0; i < model->move_count; i++) {
        if (model->moves[i].ended_s == 0)
            current = &model->moves[i];
    }
    if (current != NULL)
        draw_move(pen, current);
    pen_end(pen);
}

static size_t count_over(const TopModel *model)
{
    size_t count = 0;
    for (size_t i = 0; i < model->move_count; i++)
        count += model->moves[i].ended_s > 0 ? 1 : 0;
    return count;
}

/* "12s", "3m", "2h" */
static NumberText age_text(double seconds)
{
    seconds = fmax(seconds, 0);
    double shown = seconds < 60 ? seconds : seconds < 3600 ? seconds / 60 : seconds / 3600;
    NumberText out;
    (void)snprintf(out.text, sizeof(out.text), "%.0f%c", floor(shown),
                   seconds < 60     ? 's'
                   : seconds < 3600 ? 'm'
                                    : 'h');
    return out;
}

static void draw_moves(Pen *pen, const TopModel *model, size_t count)
{
    pen_end(pen);
    pen_format(pen, "%10s  splits and merges", "ago");
    pen_end(pen);
    for (size_t i = 0; i < model->move_count && count > 0; i++) {
        const TopMove *move = &model->moves[i];
        if (move->ended_s == 0)
            continue;
        pen_format(pen, "%10s  ", age_text((double)model->time_s - move->ended_s).text);
        draw_move(pen, move);
        pen_end(pen);
        count--;
    }
}

/* ---- the map ---- */

uint32_t top_draw_columns(const TopCanvas *canvas)
{
    uint32_t around = TOP_DRAW_LEFT_CELLS;
    if (canvas->width >= NARROW)
        around += TOP_DRAW_RIGHT_CELLS + (canvas->has_owners ? OWNER_CELLS : 0);
    uint32_t columns = canvas->width > around ? canvas->width - around : 1;
    return columns < TOP_MODEL_COLUMNS_MAX ? columns : TOP_MODEL_COLUMNS_MAX;
}

typedef struct Map {
    const TopModel *model;
    uint32_t columns;
    size_t ranges_per_line;
    double ru_most; /* of a cell: what shades are relative to where there is no allotment */
} Map;

static Map map_of(const TopModel *model, const TopCanvas *canvas, size_t lines)
{
    Map map = {.model = model, .columns = top_draw_columns(canvas)};
    map.ranges_per_line = (model->range_count + lines - 1) / lines;
    for (size_t r = 0; r < model->range_count; r++)
        for (size_t c = 0; c < model->column_count; c++)
            map.ru_most = fmax(map.ru_most, model->ranges[r].cells[c].ru);
    return map;
}

static unsigned level_of(const Map *map, const TopRange *range, double ru)
{
    double whole = range->ru_allotted > 0 ? range->ru_allotted : map->ru_most;
    if (!(ru > 0) || !(whole > 0))
        return 0;
    double part = ru / whole;
    if (part > 1.005) /* a request is charged when it ends, so a little more is no burst */
        return LEVELS;
    unsigned level = 1 + (unsigned)(part * (LEVELS - 1));
    return level < LEVELS ? level : LEVELS - 1;
}

/* One second of some neighbours: their highest shade, and whether requests were throttled. */
static void draw_cell(Pen *pen, unsigned level, bool is_throttled, int *colour)
{
    if (!pen->canvas->has_colour) {
        pen_format(pen, "%c", is_throttled ? 'X' : SHADES[level]);
        return;
    }
    if (room(pen) > 0 && *colour != COLOURS[level]) {
        buf_format(pen->out, "\033[97;48;5;%um", (unsigned)COLOURS[level]);
        *colour = COLOURS[level];
    }
    pen_format(pen, "%c", is_throttled ? 'x' : ' ');
}

static void end_colour(Pen *pen, int colour)
{
    if (colour >= 0 && !is_below(pen))
        buf_slice(pen->out, SLICE("\033[0m"));
}

static void draw_cells(Pen *pen, const Map *map, const TopRange *ranges, size_t count)
{
    size_t known = map->model->column_count;
    int colour = -1;
    for (uint32_t column = 0; column < map->columns; column++) {
        size_t ago = map->columns - column; /* seconds */
        unsigned level = 0;
        bool is_throttled = false;
        for (size_t i = 0; ago <= known && i < count; i++) {
            const TopCell *cell = &ranges[i].cells[known - ago];
            unsigned own = level_of(map, &ranges[i], cell->ru);
            level = own > level ? own : level;
            is_throttled = is_throttled || cell->throttled > 0;
        }
        draw_cell(pen, level, is_throttled, &colour);
    }
    end_colour(pen, colour);
}

/* "12", or "12-15" for several. */
static void draw_ids(Pen *pen, const TopRange *ranges, size_t count)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, 64);
    (void)top_draw_text(ranges[0].id, 8, false, &text);
    if (count > 1) {
        buf_byte(&text, '-');
        (void)top_draw_text(ranges[count - 1].id, 8, false, &text);
    }
    pen_to(pen, text.len < 7 ? 7 - (uint32_t)text.len : 0);
    pen_text(pen, buf_view(&text), 8);
}

/* What neighbours use together, as far as it is known. */
static void draw_numbers(Pen *pen, const TopRange *ranges, size_t count)
{
    TopRange sum = {.is_missing = true};
    for (size_t i = 0; i < count; i++) {
        sum.ru_second += ranges[i].ru_second;
        sum.throttled_minute += ranges[i].throttled_minute;
        sum.peak_percent = fmax(sum.peak_percent, ranges[i].peak_percent);
        sum.is_missing = sum.is_missing && ranges[i].is_missing;
    }
    if (sum.is_missing)
        pen_format(pen, " %8s %5s %6s", "?", "?", "?");
    else
        pen_format(pen, " %8s %4.0f%% %6s", count_text(sum.ru_second).text,
                   percent_of(sum.peak_percent, 100), count_text(sum.throttled_minute).text);
}

static void draw_owner(Pen *pen, const TopRange *ranges, size_t count)
{
    Slice owner = ranges[0].owner;
    for (size_t i = 1; i < count; i++) {
        if (!slice_equal(ranges[i].owner, owner))
            owner = SLICE("several");
    }
    pen_format(pen, " ");
    pen_text(pen, owner.len > 0 ? owner : SLICE("?"), OWNER_CELLS - 1);
}

static void draw_line(Pen *pen, const Map *map, size_t first)
{
    ASSERT(first < map->model->range_count);
    ASSERT(map->ranges_per_line > 0);
    const TopRange *ranges = &map->model->ranges[first];
    size_t left = map->model->range_count - first;
    size_t count = left < map->ranges_per_line ? left : map->ranges_per_line;
    draw_ids(pen, ranges, count);
    pen_to(pen, 9);
    pen_text(pen, ranges[0].min.len > 0 ? slice_first(ranges[0].min, 8) : SLICE("-"), 9);
    pen_to(pen, TOP_DRAW_LEFT_CELLS);
    draw_cells(pen, map, ranges, count);
    if (pen->canvas->width >= NARROW)
        draw_numbers(pen, ranges, count);
    if (pen->canvas->width >= NARROW && pen->canvas->has_owners)
        draw_owner(pen, ranges, count);
    pen_end(pen);
}

static void draw_map_title(Pen *pen, const Map *map)
{
    pen_format(pen, "%7s  %-9s", "part", "hash from");
    pen_to(pen, TOP_DRAW_LEFT_CELLS);
    pen_format(pen, "-%us", map->columns);
    pen_to(pen, TOP_DRAW_LEFT_CELLS + map->columns - 3);
    pen_format(pen, "now");
    if (pen->canvas->width >= NARROW)
        pen_format(pen, " %8s %5s %6s", "RU/s", "peak", "429");
    if (pen->canvas->width >= NARROW && pen->canvas->has_owners)
        pen_format(pen, " owner");
    pen_end(pen);
}

static void draw_legend(Pen *pen)
{
    int colour = -1;
    pen_to(pen, TOP_DRAW_LEFT_CELLS);
    pen_format(pen, "0%% ");
    for (unsigned level = 0; level < LEVELS; level++)
        draw_cell(pen, level, false, &colour);
    end_colour(pen, colour);
    pen_format(pen, " 100%%  ");
    colour = -1;
    draw_cell(pen, LEVELS, false, &colour);
    end_colour(pen, colour);
    pen_format(pen, " burst  ");
    colour = -1;
    draw_cell(pen, LEVELS - 1, true, &colour);
    end_colour(pen, colour);
    pen_format(pen, " 429");
    pen_end(pen);
}

/* ---- the nodes ---- */

/* The node that was asked has a mark, and says whether its lease holds. */
static void draw_nodes(Pen *pen, const TopModel *model, size_t count)
{
    pen_end(pen);
    pen_format(pen, "  node              state      owns  copies   behind   lease renewed");
    pen_end(pen);
    for (size_t i = 0; i < count; i++) {
        const TopNode *node = &model->nodes[i];
        bool is_asked = slice_equal(node->name, model->node);
        pen_format(pen, "%c ", is_asked ? '>' : ' ');
        pen_text(pen, node->name, 16);
        pen_to(pen, 20);
        pen_text(pen, node->state, 9);
        pen_to(pen, 30);
        pen_format(pen, "%5s", count_text(node->owned).text);
        pen_format(pen, " %7s", count_text(node->followed).text);
        pen_format(pen, " %8s", count_text(node->lag).text);
        pen_format(pen, " %9.1f s ago", node->renewed_ms / 1000);
        if (is_asked && !model->has_lease)
            pen_format(pen, ", does not hold");
        if (node->moves > 0)
            pen_format(pen, ", gives %zu away", node->moves);
        pen_end(pen);
    }
}

/* ---- the keys ---- */

/* A node counts the keys of requests to its own partitions. */
static void draw_keys(Pen *pen, const TopModel *model, const char *title, const char *unit,
                      const TopKeys *keys, size_t count)
{
    pen_end(pen);
    pen_format(pen, "%10s %6s %7s  %s", unit, "share", "part", title);
    if (model->node.len > 0) {
        pen_format(pen, ", at node ");
        pen_text(pen, model->node, 16);
    }
    pen_end(pen);
    for (size_t i = 0; i < count; i++) {
        const TopModelKey *key = &keys->keys[i];
        pen_format(pen, "%10s %5.1f%% ", count_text(key->amount).text,
                   key->share < 1 ? key->share * 100 : 100);
        uint32_t id_len = key->range.len < 7 ? (uint32_t)key->range.len : 7;
        pen_to(pen, 18 + 7 - id_len);
        pen_text(pen, key->range, 7);
        pen_to(pen, 27);
        pen_text(pen, key->text, UINT32_MAX);
        pen_end(pen);
    }
}

/* ---- the whole ---- */

/* The lines of each part; together at most those of the screen. */
typedef struct Plan {
    size_t map;
    size_t by_ru;
    size_t by_throttled;
    size_t moves;
    size_t nodes;
} Plan;

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static Plan plan_lines(const TopModel *model, const TopCanvas *canvas)
{
    Plan plan = {
        .map = least(model->range_count, MAP_LINES_MAX),
        .by_ru = least(model->by_ru.count, KEYS_SHOWN_MAX),
        .by_throttled = least(model->by_throttled.count, KEYS_SHOWN_MAX),
        .moves = least(count_over(model), MOVES_SHOWN_MAX),
        .nodes = least(model->node_count, NODES_SHOWN_MAX),
    };
    if (canvas->height == 0)
        return plan;
    size_t left = canvas->height > FIXED_LINES + 1 ? canvas->height - FIXED_LINES : 1;
    if (left < MOVES_LINES_MIN)
        plan.moves = 0;
    left -= plan.moves > 0 ? SECTION_LINES + plan.moves : 0;
    /* The map keeps at least as much as the nodes get. */
    plan.nodes = least(plan.nodes, left / 2 > SECTION_LINES ? left / 2 - SECTION_LINES : 0);
    left -= plan.nodes > 0 ? SECTION_LINES + plan.nodes : 0;
    size_t lists = (plan.by_ru > 0 ? SECTION_LINES + plan.by_ru : 0) +
                   (plan.by_throttled > 0 ? SECTION_LINES + plan.by_throttled : 0);
    /* The map gets at least half, and what the lists leave. */
    size_t for_map = left > lists && left - lists > left / 2 ? left - lists : (left + 1) / 2;
    plan.map = least(model->range_count, for_map);
    left -= plan.map;
    size_t half = plan.by_throttled > 0 ? (left + 1) / 2 : left;
    plan.by_ru = least(plan.by_ru, half > SECTION_LINES ? half - SECTION_LINES : 0);
    left -= plan.by_ru > 0 ? SECTION_LINES + plan.by_ru : 0;
    plan.by_throttled = least(plan.by_throttled, left > SECTION_LINES ? left - SECTION_LINES : 0);
    return plan;
}

void top_draw(const TopModel *model, const TopCanvas *canvas, Slice note, Buf *out)
{
    Pen pen = {.canvas = canvas, .out = out};
    Plan plan = plan_lines(model, canvas);
    Map map = map_of(model, canvas, plan.map);
    draw_title(&pen, model);
    draw_size(&pen, model);
    draw_use(&pen, model);
    draw_current(&pen, model);
    draw_map_title(&pen, &map);
    for (size_t first = 0; first < model->range_count; first += map.ranges_per_line)
        draw_line(&pen, &map, first);
    draw_legend(&pen);
    if (plan.nodes > 0)
        draw_nodes(&pen, model, plan.nodes);
    if (plan.by_ru > 0)
        draw_keys(&pen, model, "key, by request units", "RU", &model->by_ru, plan.by_ru);
    if (plan.by_throttled > 0)
        draw_keys(&pen, model, "key, by throttled requests", "429s", &model->by_throttled,
                  plan.by_throttled);
    if (plan.moves > 0)
        draw_moves(&pen, model, plan.moves);
    if (canvas->height > 0) {
        while (pen.line + 1 < canvas->height)
            pen_end(&pen);
    }
    if (note.len > 0)
        pen_text(&pen, note, canvas->width);
    if (note.len > 0 || canvas->height > 0)
        pen_end(&pen);
}
