/* ast_int.h - a query as a tree.
 *
 * The parser makes the tree, the binder fills in what names stand for and rewrites what a GROUP BY
 * has replaced, folding evaluates what is constant, and from then on it is immutable. Everything
 * lives in the query's arena; lists are linked, since their length is not known while they are
 * read.
 *
 * Slots. While a query runs, every source, group key and aggregate of it, at whatever level, has
 * one place in an array of values: its slot. Subqueries are nested and never recursive, so one
 * array serves all levels. Slot 0 is the document.
 *
 * Depth. Operators that lean to the left, which programs generate in hundreds, are flat here: a
 * chain applies its links one after the other, AND, OR, ?? and ?: hold lists. 'height' counts the
 * levels that are left; the parser keeps it below QUERY_DEPTH_MAX, so that functions that walk the
 * tree may recurse.
 */
#pragma once

#include "base/arena.h"
#include "base/slice.h"
#include "query/sql/sql_error_int.h"
#include "query/sql/value_int.h"

typedef struct Node Node;
typedef struct Select Select;
typedef struct Function Function;

enum { SLOT_DOCUMENT = 0, SLOT_NONE = UINT32_MAX };

/* What a subquery costs in levels of nesting: running one takes more frames than an operator. */
enum { SUBQUERY_LEVELS = 4 };

typedef enum NodeKind {
    NODE_LITERAL,
    NODE_PARAMETER,
    NODE_NAME, /* an alias */
    NODE_PATH, /* .name and [index] after something */
    NODE_UNARY,
    NODE_CHAIN, /* ((first op a) op b) op c */
    NODE_AND,
    NODE_OR,
    NODE_COALESCE,
    NODE_CONDITIONAL, /* condition, value, condition, value, ..., last value */
    NODE_BETWEEN,
    NODE_IN,
    NODE_LIKE,
    NODE_ARRAY,
    NODE_OBJECT,
    NODE_CALL,
    NODE_UDF,
    NODE_SUBQUERY,
    NODE_SLOT, /* made by the binder: a group key that has been evaluated already */
} NodeKind;

typedef enum UnaryOp { UNARY_MINUS, UNARY_PLUS, UNARY_BITNOT, UNARY_NOT } UnaryOp;

typedef enum BinaryOp {
    BINARY_MULTIPLY,
    BINARY_DIVIDE,
    BINARY_MODULO,
    BINARY_ADD,
    BINARY_SUBTRACT,
    BINARY_BITAND,
    BINARY_BITOR,
    BINARY_BITXOR,
    BINARY_CONCAT,
    BINARY_EQUAL,
    BINARY_NOT_EQUAL,
    BINARY_LESS,
    BINARY_LESS_EQUAL,
    BINARY_GREATER,
    BINARY_GREATER_EQUAL,
    BINARY_SHIFT_LEFT,
    BINARY_SHIFT_RIGHT,
    BINARY_SHIFT_RIGHT_ZERO,
} BinaryOp;

typedef enum SubqueryMode {
    SUBQUERY_SCALAR, /* its only row */
    SUBQUERY_EXISTS,
    SUBQUERY_ARRAY,
    SUBQUERY_ALL,
    SUBQUERY_FIRST,
    SUBQUERY_LAST,
} SubqueryMode;

typedef struct NodeList {
    Node *first;
    Node *last;
    uint32_t count;
} NodeList;

typedef struct Step {
    struct Step *next;
    Slice name;  /* .name or ["name"], if 'index' is NULL */
    Node *index; /* [index] */
} Step;

typedef struct Link {
    struct Link *next;
    BinaryOp op;
    Node *right;
} Link;

typedef struct Property {
    struct Property *next;
    Slice name;
    Span span; /* of the name */
    Node *value;
} Property;

struct Node {
    NodeKind kind;
    uint16_t height;
    bool negated;     /* NOT IN, NOT LIKE, NOT BETWEEN */
    bool is_constant; /* says the same for every document, and every run: fold_int.h */
    bool is_computed; /* stands where the text names a computed property, or a path after one */
    Span span;
    Node *next; /* in a NodeList */
    union {
        Value literal;
        struct {
            Slice name;
            Value value;
        } parameter;
        struct {
            Slice name;
            uint32_t slot;
            bool is_document; /* a whole item of the container */
        } name;
        struct {
            Node *base;
            Step *first;
            Step *last;
        } path;
        struct {
            UnaryOp op;
            Node *operand;
        } unary;
        struct {
            Node *first;
            Link *links;
            Link *last;
        } chain;
        NodeList list; /* AND, OR, COALESCE, CONDITIONAL, ARRAY */
        struct {
            Node *value;
            Node *low;
            Node *high;
        } between;
        struct {
            Node *value;
            NodeList list;
        } in;
        struct {
            Node *value;
            Node *pattern;
            uint32_t escape; /* a character, or TEXT_INVALID for none */
        } like;
        struct {
            Property *first;
            uint32_t count;
        } object;
        struct {
            Slice name;
            Span name_span;
            NodeList args;
            const Function *function;
            uint32_t slot;        /* of an aggregate: where its result will be */
            const Select *owner;  /* of an aggregate: the SELECT that has its rows */
            Node *next_aggregate; /* of an aggregate: the next one of the same SELECT */
        } call;                   /* also NODE_UDF, whose 'slot' is its index in Query.user_calls */
        struct {
            SubqueryMode mode;
            Select *select;
        } subquery;
        uint32_t slot;
    };
};

typedef enum ProjectionKind { PROJECT_STAR, PROJECT_VALUE, PROJECT_LIST } ProjectionKind;

typedef struct SelectItem {
    struct SelectItem *next;
    Slice name; /* given, or inferred by the binder */
    bool has_name;
    bool is_quoted; /* the name is written as a string: it need not be an identifier */
    Span name_span;
    Node *value;
} SelectItem;

typedef struct Source {
    struct Source *next;
    Span span;
    Slice alias; /* given, or inferred by the binder; empty if it cannot be referred to */
    bool has_alias;
    bool iterate;     /* alias IN ...: one row per element */
    Node *value;      /* a path or a function call, or */
    Select *subquery; /* a subquery */

    /* Filled in by the binder. */
    uint32_t slot;
    bool is_document; /* stands for whole items of the container */
} Source;

typedef struct Order {
    struct Order *next;
    bool descending;
    Node *value;
} Order;

typedef struct Count {
    bool is_given;
    Span span;
    Node *parameter; /* NULL if it was a number */
    uint64_t value;  /* of a parameter: filled in by the binder */
} Count;

struct Select {
    Span span;
    bool distinct;
    Count top;
    Count offset;
    Count limit;
    ProjectionKind projection;
    Span star;
    SelectItem *items; /* one without a name if PROJECT_VALUE */
    Source *sources;
    uint32_t source_count;
    Node *where;
    NodeList group_by;
    Order *order_by;
    uint32_t order_count;
    bool by_rank;

    /* Filled in by the binder. */
    bool over_container; /* its first source looks at every document */
    uint32_t group_slot; /* slots of the group keys, in their order */
    Node *aggregates;    /* linked by next_aggregate, in the order of the text */
    Node *last_aggregate;
    uint32_t aggregate_count;
    bool is_grouped; /* has group keys or aggregates */
};

static inline void list_append(NodeList *list, Node *node)
{
    node->next = NULL;
    if (list->last == NULL)
        list->first = node;
    else
        list->last->next = node;
    list->last = node;
    list->count++;
}

/* The same expression, whatever its spelling and place. Both must be bound. */
bool node_equal(const Node *a, const Node *b);

/* True if 'path' begins with all of 'prefix'; '*rest' is then the first step after it. */
bool node_has_prefix(const Node *path, const Node *prefix, Step **rest);

/* Whether nothing but its parts, and the function that it calls, decides what an expression says:
 * it is no name, slot, subquery or function of a user. */
bool node_is_closed(const Node *node);

/* Calls 'visit' for every direct part of an expression, and of a query: all its clauses, and those
 * of the subqueries in its FROM. */
typedef Status (*NodeVisit)(void *context, Node *node);
MUST_USE Status node_each_child(Node *node, NodeVisit visit, void *context);
MUST_USE Status select_each_node(Select *select, NodeVisit visit, void *context);
