/* policy_int.h - how a compiled policy looks, for the two files that make and ask it. */
#pragma once

#include "index/policy.h"

/* Always: included, and not by anybody's choice. */
typedef enum Says { SAYS_NOTHING, SAYS_EXCLUDED, SAYS_INCLUDED, SAYS_ALWAYS } Says;

typedef struct Rule {
    const IndexStep *steps;
    size_t step_count;
    bool is_subtree;
    Says says;
    const SpatialIndex *spatial; /* of the rules of spatial indexes */
} Rule;

/* Rules while they are collected; of two for the same the later one counts. */
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
    bool reaches; /* a rule at or below includes something */
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

/* The tree of some rules. */
const PolicyNode *policy_build_tree(Arena *arena, RuleList *rules);
