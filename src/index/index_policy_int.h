/* index_policy_int.h - a compiled policy in memory: index_policy_read.c makes it, index_policy.c
 * answers from it. */
#pragma once

#include "index/index_policy.h"

/* What a rule says about a path; SAYS_ALWAYS if it is included whatever the user chose. */
typedef enum Says { SAYS_NOTHING, SAYS_EXCLUDED, SAYS_INCLUDED, SAYS_ALWAYS } Says;

typedef struct Rule {
    const IndexStep *steps;
    size_t step_count;
    bool is_subtree;
    Says says;
    const SpatialIndex *spatial; /* of a rule of a spatial index; NULL otherwise */
} Rule;

/* Rules while they are collected; of two for the same path the later one counts. */
typedef struct RuleList {
    Rule *rules;
    size_t count;
} RuleList;

struct PolicyNode {
    Slice name; /* of the step that leads here */
    const PolicyNode *children;
    size_t child_count; /* names, sorted */
    const PolicyNode *element;
    Says value;   /* "/?" */
    Says subtree; /* the star */
    const SpatialIndex *spatial_value;
    const SpatialIndex *spatial_subtree;
    bool reaches; /* whether a rule at or below includes something */
};

struct IndexPolicy {
    bool is_automatic;
    const PolicyNode *root;
    const PolicyNode *spatial_root; /* of the rules of spatial indexes */
    CompositeIndex *composites;     /* sorted by name, without repetition */
    Slice *composite_names;         /* "/a ASC, /b DESC" */
    size_t composite_count;
    SpatialIndex *spatials;
    size_t spatial_count;
};

/* Makes the tree of the rules. */
const PolicyNode *policy_build_tree(Arena *arena, RuleList *rules);
