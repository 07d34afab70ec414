/* patch_model_test.c - random patches against a model that is slow and obviously right.
 *
 * The model copies the whole document into a tree of plain tables, changes that, and copies it
 * back. Both have to agree on what is possible, and on every byte of the result.
 */
#include "base/random.h"
#include "base/test_seed.h"
#include "partition/patch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

typedef struct Model Model;
struct Model {
    JsonType type;
    Json scalar;
    size_t count;
    Slice *names;   /* of an object */
    Model **values; /* with room for one more than there are */
};

static Arena arena;

static Model *model_make(Json value)
{
    Model *model = ARENA_NEW(&arena, Model);
    model->type = json_type(value);
    model->scalar = value;
    if (model->type != JSON_OBJECT && model->type != JSON_ARRAY)
        return model;
    model->names = ARENA_NEW_ARRAY(&arena, Slice, json_count(value) + 1);
    model->values = ARENA_NEW_ARRAY(&arena, Model *, json_count(value) + 1);
    JsonIter it = json_iter(value);
    while (json_next(&it)) {
        model->names[model->count] = it.name;
        model->values[model->count++] = model_make(it.value);
    }
    return model;
}

static void model_build(JsonBuilder *b, const Model *model)
{
    if (model->type != JSON_OBJECT && model->type != JSON_ARRAY) {
        json_add(b, model->scalar);
        return;
    }
    if (model->type == JSON_OBJECT)
        json_begin_object(b);
    else
        json_begin_array(b);
    for (size_t i = 0; i < model->count; i++) {
        if (model->type == JSON_OBJECT)
            json_key(b, model->names[i]);
        model_build(b, model->values[i]);
    }
    json_end(b);
}

static Json model_json(const Model *model)
{
    JsonBuilder b;
    json_build(&b, &arena);
    model_build(&b, model);
    return json_built(&b);
}

static void model_insert(Model *model, size_t at, Slice name, Model *value)
{
    Slice *names = ARENA_NEW_ARRAY(&arena, Slice, model->count + 2);
    Model **values = ARENA_NEW_ARRAY(&arena, Model *, model->count + 2);
    for (size_t i = 0; i < model->count + 1; i++) {
        names[i] = i < at ? model->names[i] : i == at ? name : model->names[i - 1];
        values[i] = i < at ? model->values[i] : i == at ? value : model->values[i - 1];
    }
    model->names = names;
    model->values = values;
    model->count++;
}

static void model_remove(Model *model, size_t at)
{
    for (size_t i = at; i + 1 < model->count; i++) {
        model->names[i] = model->names[i + 1];
        model->values[i] = model->values[i + 1];
    }
    model->count--;
}

/* The position of a segment: that of a child, or model->count; larger if there can be none. */
static size_t model_find(const Model *model, Slice segment)
{
    if (model->type == JSON_OBJECT) {
        size_t at = 0;
        while (at < model->count && !slice_equal(model->names[at], segment))
            at++;
        return at;
    }
    for (size_t at = 0; at <= model->count; at++) {
        if (slice_equal(segment, arena_format(&arena, "%zu", at)))
            return at;
    }
    return slice_equal(segment, SLICE("-")) ? model->count : SIZE_MAX;
}

static Slice unescape(Slice text)
{
    char *out = arena_alloc(&arena, text.len);
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        bool escaped = text.ptr[i] == '~';
        i += escaped;
        out[len++] = !escaped ? text.ptr[i] : text.ptr[i] == '0' ? '~' : '/';
    }
    return slice_make(out, len);
}

/* Follows a pointer to the container of its last segment. */
static Model *model_walk(Model *root, Slice pointer, Slice *last)
{
    Model *model = root;
    for (size_t begin = 1;;) {
        if (model->type != JSON_OBJECT && model->type != JSON_ARRAY)
            return NULL;
        size_t len = slice_find(slice_from(pointer, begin), '/');
        *last = unescape(slice_make(pointer.ptr + begin, len));
        begin += len + 1;
        if (begin > pointer.len)
            return model;
        size_t at = model_find(model, *last);
        if (at >= model->count)
            return NULL;
        model = model->values[at];
    }
}

static bool model_add(Model *root, Slice pointer, Model *value)
{
    Slice last;
    Model *parent = model_walk(root, pointer, &last);
    size_t at = parent == NULL ? SIZE_MAX : model_find(parent, last);
    if (parent == NULL || at > parent->count)
        return false;
    if (parent->type == JSON_OBJECT && at < parent->count)
        parent->values[at] = value;
    else
        model_insert(parent, at, last, value);
    return true;
}

static bool model_incr(Model *target, Json value)
{
    if (target->type != JSON_NUMBER)
        return false;
    /* Numbers here are small: all sums are exact. */
    JsonBuilder b;
    json_build(&b, &arena);
    json_add_number(&b, json_number(target->scalar) + json_number(value));
    *target = *model_make(json_built(&b));
    return true;
}

static bool model_apply(Model *root, Json operation)
{
    Slice op = json_string(json_get(operation, SLICE("op")));
    Slice pointer = json_string(json_get(operation, SLICE("path")));
    Json value = json_get(operation, SLICE("value"));
    bool is_move = slice_equal(op, SLICE("move"));
    Slice from = is_move ? json_string(json_get(operation, SLICE("from"))) : pointer;
    if (slice_equal(op, SLICE("add")))
        return model_add(root, pointer, model_make(value));

    Slice last;
    Model *parent = model_walk(root, from, &last);
    if (parent == NULL)
        return false;
    size_t at = model_find(parent, last);
    bool is_array = parent->type == JSON_ARRAY;
    bool is_there = at < parent->count;
    if (is_move || slice_equal(op, SLICE("remove"))) {
        if (!is_there)
            return false;
        Model *taken = parent->values[at];
        model_remove(parent, at);
        return !is_move || model_add(root, pointer, taken);
    }
    if (slice_equal(op, SLICE("incr")) && is_there)
        return model_incr(parent->values[at], value);
    if (is_there) {
        parent->values[at] = model_make(value);
        return true;
    }
    if (slice_equal(op, SLICE("replace")))
        return false;
    if (is_array && !(slice_equal(op, SLICE("set")) && slice_equal(last, SLICE("-"))))
        return false;
    model_insert(parent, parent->count, last, model_make(value));
    return true;
}

/* Few names, so that paths often lead somewhere; some look like positions or need escapes. */
static const Slice NAMES[] = {SLICE_INIT("a"), SLICE_INIT("b"), SLICE_INIT("c"), SLICE_INIT("0"),
                              SLICE_INIT("-"), SLICE_INIT(""),  SLICE_INIT("~"), SLICE_INIT("x/y")};

static void random_value(JsonBuilder *b, Random *random, uint32_t depth)
{
    uint64_t pick = random_below(random, depth == 0 ? 3 : 8);
    if (pick == 0) {
        json_add_null(b);
        return;
    }
    if (pick <= 2) {
        json_add_number(b, (double)random_below(random, 100) / 4);
        return;
    }
    bool is_object = pick <= 5;
    if (is_object)
        json_begin_object(b);
    else
        json_begin_array(b);
    for (uint64_t i = random_below(random, 6); i > 0; i--) {
        if (is_object)
            json_key(b, NAMES[random_below(random, ARRAY_COUNT(NAMES))]);
        random_value(b, random, depth - 1);
    }
    json_end(b);
}

static void put_segment(Buf *out, Slice name)
{
    buf_byte(out, '/');
    for (size_t i = 0; i < name.len; i++) {
        if (name.ptr[i] == '~' || name.ptr[i] == '/')
            buf_slice(out, name.ptr[i] == '~' ? SLICE("~0") : SLICE("~1"));
        else
            buf_byte(out, (uint8_t)name.ptr[i]);
    }
}

/* Mostly a path to something in the document as it is now, or to what could be added to it. */
static Slice random_pointer(Random *random, const Model *model)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, 4096);
    for (size_t depth = 0; depth < 5; depth++) {
        uint64_t pick = random_below(random, 10);
        if (pick == 0 || model == NULL || model->count == 0) {
            put_segment(&text, NAMES[random_below(random, ARRAY_COUNT(NAMES))]);
            model = NULL;
        } else {
            size_t at = random_below(random, model->count + (model->type == JSON_ARRAY));
            if (model->type == JSON_ARRAY)
                put_segment(&text, arena_format(&arena, "%zu", at));
            else
                put_segment(&text, model->names[at]);
            model = at < model->count ? model->values[at] : NULL;
        }
        if (random_below(random, 3) == 0 || (model == NULL && pick < 8))
            break;
    }
    return arena_copy(&arena, buf_view(&text));
}

static Json random_operation(Random *random, const Model *model)
{
    static const char *const ops[] = {"add", "set", "replace", "remove", "incr", "move", "move"};
    const char *op = ops[random_below(random, ARRAY_COUNT(ops))];
    Slice path = random_pointer(random, model), from = random_pointer(random, model);
    /* A move into itself is refused before there is a document. */
    if (slice_starts_with(path, from) && path.len > from.len && path.ptr[from.len] == '/')
        op = "remove";
    JsonBuilder b;
    json_build(&b, &arena);
    json_begin_object(&b);
    json_key(&b, SLICE("op"));
    json_add_string(&b, slice_from_cstr(op));
    json_key(&b, SLICE("path"));
    json_add_string(&b, path);
    json_key(&b, SLICE("from"));
    json_add_string(&b, from);
    json_key(&b, SLICE("value"));
    random_value(&b, random, strcmp(op, "incr") == 0 ? 0 : 2);
    json_end(&b);
    Json operation = json_built(&b);
    if (strcmp(op, "incr") == 0 && !json_is(json_get(operation, SLICE("value")), JSON_NUMBER))
        return random_operation(random, model);
    return operation;
}

/* One random patch; returns whether it could be applied. */
static bool run_case(uint64_t seed)
{
    Random random;
    random_init(&random, seed);
    JsonBuilder b;
    json_build(&b, &arena);
    json_begin_object(&b);
    for (uint64_t i = random_below(&random, 6); i > 0; i--) {
        json_key(&b, NAMES[random_below(&random, ARRAY_COUNT(NAMES))]);
        random_value(&b, &random, 3);
    }
    json_end(&b);
    Json document = json_built(&b);

    /* The model is applied while the patch is made, so that later paths fit what came before. Most
     * operations that cannot be applied are left out, or few patches would get to their end. */
    Model *model = model_make(document);
    size_t count = 1 + random_below(&random, PATCH_OPERATIONS_MAX), failed = 0;
    json_build(&b, &arena);
    json_begin_array(&b);
    for (size_t i = 1; i <= count && failed == 0;) {
        Json operation = random_operation(&random, model);
        Model *changed = model_make(model_json(model));
        bool is_possible = model_apply(changed, operation);
        if (!is_possible && random_below(&random, 8) > 0)
            continue;
        json_add(&b, operation);
        failed = is_possible ? 0 : i;
        model = is_possible ? changed : model;
        i++;
    }
    json_end(&b);
    Json body = json_built(&b), result = JSON_NONE;

    Error err = {0};
    Patch *patch;
    PatchRules rules = {.bytes_max = 1 << 20};
    if (patch_parse(&arena, body, &rules, &patch, &err) != STATUS_OK)
        fail_msg("seed %llu: %s", (unsigned long long)seed, err.message);
    Status status = patch_apply(patch, &arena, document, &result, &err);
    Slice prefix = arena_format(&arena, "For Operation(%zu): ", failed);
    bool agrees = failed > 0
                      ? status == STATUS_BAD_REQUEST &&
                            slice_starts_with(slice_from_cstr(err.message), prefix)
                      : status == STATUS_OK && slice_equal(json_bytes(&arena, result),
                                                           json_bytes(&arena, model_json(model)));
    if (!agrees)
        fail_msg("seed %llu: %s on %s: model fails at %zu, patch says '%s'",
                 (unsigned long long)seed, arena_cstr(&arena, json_print_arena(&arena, body)),
                 arena_cstr(&arena, json_print_arena(&arena, document)), failed, err.message);
    return failed == 0;
}

static void patches_do_what_the_model_does(void **state)
{
    (void)state;
    enum { CASES = 10000 };
    size_t applied = 0;
    arena_init(&arena, 64 << 10);
    uint64_t first = test_seed();
    for (uint64_t seed = first; seed < first + CASES; seed++) {
        applied += run_case(seed);
        arena_reset(&arena);
    }
    arena_done(&arena);
    /* Both outcomes are common, or the generator tests little. */
    print_message("%zu of %d patches could be applied\n", applied, CASES);
    assert_in_range(applied, CASES / 5, CASES * 4 / 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patches_do_what_the_model_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
