/* index_policy.c - answers from a compiled policy: see index_policy.h. index_policy_read.c makes
 * one.
 *
 * All rules are sorted by their steps, and the tree is made from the sorted list in one pass: the
 * rules below a node are neighbours. A node knows whether anything at or below it is included, so
 * that a walk can stop early.
 */
#include "index/index_policy_int.h"

#include <stdlib.h>

/* Up to this many children a look-up goes over all of them. */
enum { SCAN_CHILDREN_MAX = 8 };

static const PolicyNode *find_child(const PolicyNode *node, Slice name);
static bool same_places(PolicyPlace a, PolicyPlace b);
static bool same_spatial_places(SpatialPlace a, SpatialPlace b);

bool index_policy_is_automatic(const IndexPolicy *policy)
{
    return policy->is_automatic;
}

bool index_policy_equal(const IndexPolicy *a, const IndexPolicy *b)
{
    if (a->composite_count != b->composite_count)
        return false;
    for (size_t i = 0; i < a->composite_count; ++i) {
        if (!slice_equal(a->composite_names[i], b->composite_names[i]))
            return false;
    }
    return same_places(policy_root(a), policy_root(b)) &&
           same_spatial_places(policy_spatial_root(a), policy_spatial_root(b));
}

PolicyPlace policy_root(const IndexPolicy *policy)
{
    return (PolicyPlace){.node = policy->root, .subtree = policy->root->subtree == SAYS_INCLUDED};
}

static PolicyPlace enter(PolicyPlace place, const PolicyNode *child)
{
    bool subtree = child == NULL || child->subtree == SAYS_NOTHING
                       ? place.subtree
                       : child->subtree == SAYS_INCLUDED;
    return (PolicyPlace){.node = child, .subtree = subtree};
}

PolicyPlace policy_name(PolicyPlace place, Slice name)
{
    return place.node == NULL ? place : enter(place, find_child(place.node, name));
}

PolicyPlace policy_element(PolicyPlace place)
{
    return place.node == NULL ? place : enter(place, place.node->element);
}

bool policy_indexes(PolicyPlace place)
{
    bool by_star = place.node == NULL || place.node->value == SAYS_NOTHING;
    return by_star ? place.subtree : place.node->value >= SAYS_INCLUDED;
}

bool policy_indexes_always(PolicyPlace place)
{
    return place.node != NULL && place.node->value == SAYS_ALWAYS;
}

bool policy_indexes_below(PolicyPlace place)
{
    return place.subtree || (place.node != NULL && place.node->reaches);
}

bool index_policy_has(const IndexPolicy *policy, const IndexStep *steps, size_t count)
{
    PolicyPlace place = policy_root(policy);
    for (size_t i = 0; i < count; ++i)
        place = steps[i].is_element ? policy_element(place) : policy_name(place, steps[i].name);
    return policy_indexes(place);
}

const CompositeIndex *index_policy_composites(const IndexPolicy *policy, size_t *count)
{
    *count = policy->composite_count;
    return policy->composites;
}

const SpatialIndex *index_policy_spatials(const IndexPolicy *policy, size_t *count)
{
    *count = policy->spatial_count;
    return policy->spatials;
}

static SpatialPlace enter_spatial(SpatialPlace place, const PolicyNode *child)
{
    bool is_own = child != NULL && child->spatial_subtree != NULL;
    return (SpatialPlace){.node = child,
                          .subtree = is_own ? child->spatial_subtree : place.subtree};
}

SpatialPlace policy_spatial_root(const IndexPolicy *policy)
{
    return enter_spatial((SpatialPlace){0}, policy->spatial_root);
}

SpatialPlace policy_spatial_name(SpatialPlace place, Slice name)
{
    return place.node == NULL ? place : enter_spatial(place, find_child(place.node, name));
}

SpatialPlace policy_spatial_element(SpatialPlace place)
{
    return place.node == NULL ? place : enter_spatial(place, place.node->element);
}

const SpatialIndex *policy_spatial(SpatialPlace place)
{
    bool is_own = place.node != NULL && place.node->spatial_value != NULL;
    return is_own ? place.node->spatial_value : place.subtree;
}

bool policy_spatial_below(SpatialPlace place)
{
    return place.node != NULL || place.subtree != NULL;
}

const SpatialIndex *index_policy_spatial(const IndexPolicy *policy, const IndexStep *steps,
                                         size_t count)
{
    SpatialPlace place = policy_spatial_root(policy);
    for (size_t i = 0; i < count; ++i)
        place = steps[i].is_element ? policy_spatial_element(place)
                                    : policy_spatial_name(place, steps[i].name);
    return policy_spatial(place);
}

/* ---- the tree ---- */

/* Names by their bytes, "[]" after them. */
static int compare_steps(const IndexStep *a, const IndexStep *b)
{
    if (a->is_element || b->is_element)
        return (int)a->is_element - (int)b->is_element;
    return slice_compare(a->name, b->name);
}

/* Rules of one path keep their order in the array. */
static int compare_rules(const void *left, const void *right)
{
    const Rule *a = *(const Rule *const *)left;
    const Rule *b = *(const Rule *const *)right;
    for (size_t i = 0; i < a->step_count && i < b->step_count; ++i) {
        int order = compare_steps(&a->steps[i], &b->steps[i]);
        if (order != 0)
            return order;
    }
    if (a->step_count != b->step_count)
        return a->step_count < b->step_count ? -1 : 1;
    return (a > b) - (a < b);
}

static void apply(const Rule *rule, PolicyNode *node)
{
    if (rule->spatial != NULL)
        *(rule->is_subtree ? &node->spatial_subtree : &node->spatial_value) = rule->spatial;
    else
        *(rule->is_subtree ? &node->subtree : &node->value) = rule->says;
}

/* The node for 'count' rules that have their first 'depth' steps in common. */
static void build_node(Arena *arena, const Rule **rules, size_t count, size_t depth,
                       PolicyNode *node)
{
    size_t at = 0;
    for (; at < count && rules[at]->step_count == depth; ++at)
        apply(rules[at], node);
    node->reaches = node->value >= SAYS_INCLUDED || node->subtree == SAYS_INCLUDED;

    size_t child_count = 0;
    for (size_t i = at; i < count; ++i)
        child_count +=
            i == at || compare_steps(&rules[i - 1]->steps[depth], &rules[i]->steps[depth]) != 0;
    PolicyNode *children = ARENA_NEW_ARRAY(arena, PolicyNode, child_count);
    node->children = children;
    while (at < count) {
        const IndexStep *step = &rules[at]->steps[depth];
        size_t end = at + 1;
        while (end < count && compare_steps(step, &rules[end]->steps[depth]) == 0)
            ++end;
        PolicyNode *child = children++;
        child->name = step->name;
        build_node(arena, rules + at, end - at, depth + 1, child);
        node->reaches |= child->reaches;
        /* Sorted last, so it is never between the names. */
        if (step->is_element)
            node->element = child;
        else
            ++node->child_count;
        at = end;
    }
}

const PolicyNode *policy_build_tree(Arena *arena, RuleList *rules)
{
    const Rule **sorted = ARENA_NEW_ARRAY(arena, const Rule *, rules->count);
    for (size_t i = 0; i < rules->count; ++i)
        sorted[i] = &rules->rules[i];
    qsort(sorted, rules->count, sizeof(Rule *), compare_rules);
    PolicyNode *root = ARENA_NEW(arena, PolicyNode);
    build_node(arena, sorted, rules->count, 0, root);
    return root;
}

static const PolicyNode *find_child(const PolicyNode *node, Slice name)
{
    const PolicyNode *children = node->children;
    size_t low = 0;
    size_t high = node->child_count;
    while (high - low > SCAN_CHILDREN_MAX) {
        size_t middle = low + (high - low) / 2;
        if (slice_compare(children[middle].name, name) <= 0)
            low = middle;
        else
            high = middle;
    }
    for (; low < high; ++low) {
        if (slice_equal(children[low].name, name))
            return &children[low];
    }
    return NULL;
}

/* ---- comparing two policies by what they say about every path ---- */

static bool same_places(PolicyPlace a, PolicyPlace b)
{
    if (a.subtree != b.subtree || policy_indexes(a) != policy_indexes(b))
        return false;
    for (size_t i = 0; a.node != NULL && i < a.node->child_count; ++i) {
        Slice name = a.node->children[i].name;
        if (!same_places(policy_name(a, name), policy_name(b, name)))
            return false;
    }
    for (size_t i = 0; b.node != NULL && i < b.node->child_count; ++i) {
        Slice name = b.node->children[i].name;
        bool is_done = a.node != NULL && find_child(a.node, name) != NULL;
        if (!is_done && !same_places(policy_name(a, name), policy_name(b, name)))
            return false;
    }
    bool has_element =
        (a.node != NULL && a.node->element != NULL) || (b.node != NULL && b.node->element != NULL);
    return !has_element || same_places(policy_element(a), policy_element(b));
}

static bool same_index(const SpatialIndex *a, const SpatialIndex *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    const SpatialBox *left = &a->frame.box;
    const SpatialBox *right = &b->frame.box;
    return a->types == b->types && a->frame.is_plane == b->frame.is_plane &&
           left->west == right->west && left->south == right->south && left->east == right->east &&
           left->north == right->north;
}

static bool same_spatial_places(SpatialPlace a, SpatialPlace b)
{
    if (!same_index(a.subtree, b.subtree) || !same_index(policy_spatial(a), policy_spatial(b)))
        return false;
    for (size_t i = 0; a.node != NULL && i < a.node->child_count; ++i) {
        Slice name = a.node->children[i].name;
        if (!same_spatial_places(policy_spatial_name(a, name), policy_spatial_name(b, name)))
            return false;
    }
    for (size_t i = 0; b.node != NULL && i < b.node->child_count; ++i) {
        Slice name = b.node->children[i].name;
        bool is_done = a.node != NULL && find_child(a.node, name) != NULL;
        if (!is_done &&
            !same_spatial_places(policy_spatial_name(a, name), policy_spatial_name(b, name)))
            return false;
    }
    bool has_element =
        (a.node != NULL && a.node->element != NULL) || (b.node != NULL && b.node->element != NULL);
    return !has_element ||
           same_spatial_places(policy_spatial_element(a), policy_spatial_element(b));
}
