/* nearest.c - see nearest.h. */
#include "base/nearest.h"

#include <string.h>

enum { WORD_MAX = 64 };

/* Number of single-character changes between two words, cut off at WORD_MAX. */
static size_t distance(const char *a, const char *b)
{
    size_t row[WORD_MAX + 1];
    size_t b_len = strnlen(b, WORD_MAX);
    for (size_t j = 0; j <= b_len; j++)
        row[j] = j;
    for (size_t i = 1; i <= strnlen(a, WORD_MAX); i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1] ? 1 : 0);
            best = row[j] + 1 < best ? row[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[b_len];
}

const char *nearest_word(const char *word, const char *const *candidates)
{
    const char *nearest = NULL;
    size_t best = 4; /* up to three changes may be a typing error */
    for (; *candidates != NULL; candidates++) {
        size_t d = distance(word, *candidates);
        if (d < best && d < strlen(*candidates)) {
            best = d;
            nearest = *candidates;
        }
    }
    return nearest;
}
