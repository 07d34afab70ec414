/* verdict.h - what measurements of a partition key mean: findings in plain words, and a score.
 *
 * A key is acceptable if none of its findings is a refusal. The score orders keys: 100 is a key
 * that spreads storage and writes evenly and sends each query to one partition.
 *
 * Ownership  Texts live in the arena given.
 */
#pragma once

#include "advise/key_layout.h"
#include "advise/key_queries.h"

typedef enum FindingCode {
#define FINDING_ROW(name, code) FINDING_##name,
#include "advise/findings.def"
    FINDING_COUNT
} FindingCode;

typedef enum FindingLevel {
    FINDING_NOTE,
    FINDING_WARNING,
    FINDING_REFUSAL, /* the key is not acceptable */
} FindingLevel;

typedef struct Finding {
    FindingCode code;
    FindingLevel level;
    Slice text;
} Finding;

typedef struct Verdict {
    Finding findings[FINDING_COUNT]; /* the worst first */
    size_t count;
    FindingLevel worst; /* FINDING_NOTE if there are none */
    double score;       /* 0 to 100 */
} Verdict;

/* What is known besides the measurements of the key itself. */
typedef struct VerdictContext {
    const Sample *sample;
    uint32_t partitions;
    double now_s;  /* since 1970 */
    bool is_small; /* one physical partition will do for years */
} VerdictContext;

/* 'queries' is NULL if no workload is known. */
void verdict_make(const KeyCandidate *key, const KeyLayout *layout, const KeyQueries *queries,
                  const VerdictContext *context, Arena *arena, Verdict *out);

const char *finding_code(FindingCode code);
const char *finding_level(FindingLevel level); /* "note", "warning", "refusal" */
bool verdict_has(const Verdict *verdict, FindingCode code);
