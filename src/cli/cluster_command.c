/* cluster_command.c - see cluster_command.h. A node does the work: /_orrery/cluster. */
#include "cli/cluster_command.h"

#include "base/encoding.h"
#include "base/random.h"
#include "cli/arguments.h"
#include "cli/cluster_adopt.h"
#include "cli/cluster_settings.h"
#include "cli/cluster_view.h"
#include "cli/commands.h"
#include "cli/connection.h"
#include "cli/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    EXIT_USAGE = 2,
    TIMEOUT_MS = 600000,
    DRAIN_LOOKS_MAX = 60, /* at what a node that is drained still owns, and the pause between two */
    DRAIN_PAUSE_S = 1,
};

typedef struct ClusterArguments {
#define ARGUMENT_ROW(field, name, kind, placeholder, fallback, help) ARGUMENT_TYPE_##kind field;
#include "cli/cluster_options.def"
#undef ARGUMENT_ROW
} ClusterArguments;

static const ArgumentRow ROWS[] = {
#define ARGUMENT_ROW(field, name, kind, placeholder, fallback, help) \
    ARGUMENT_TABLE_ROW(ClusterArguments, field, name, kind, placeholder, fallback, help),
#include "cli/cluster_options.def"
#undef ARGUMENT_ROW
};
static const ArgumentTable TABLE = {"cluster", ROWS, ARRAY_COUNT(ROWS)};

typedef struct Action {
    const char *word;
    const char *help;
    int operands;         /* that follow the word */
    const char *expected; /* what they are */
    ClientMethod method;
    const char *path; /* with a %s for each operand; NULL if no node is asked */
    const char *done; /* what is said afterwards, likewise; NULL if the answer is shown */
    Status (*show)(Arena *arena, Slice answer, FILE *to, Error *err); /* how it is shown */
} Action;

static const char ADOPT[] = "adopt";
static const char DRAIN[] = "drain";

static const Action ACTIONS[] = {
    {"secret",
     "prints a new secret, which all nodes of a cluster share: orrery cluster secret > FILE", 0,
     NULL, CLIENT_GET, NULL, NULL, NULL},
    {ADOPT, "makes the first node of a new cluster of the data folder of a server that is stopped",
     0, NULL, CLIENT_GET, NULL, NULL, NULL},
    {"status", "shows the nodes, who owns how many partitions, and how far copies are behind", 0,
     NULL, CLIENT_GET, "/_orrery/cluster", NULL, cluster_view_print},
    {DRAIN,
     "gives all partitions of a node to the others, and keeps new ones away from it; waits for up "
     "to a minute until it owns none",
     1, "a node", CLIENT_POST, "/_orrery/cluster/drain?node=%s",
     "Node '%s' gives its partitions to the others.", NULL},
    {"undrain", "lets a node that was drained own partitions again", 1, "a node", CLIENT_DELETE,
     "/_orrery/cluster/drain?node=%s", "Node '%s' may own partitions again.", NULL},
    {"remove", "forgets a node that is dead and does not come back", 1, "a node", CLIENT_DELETE,
     "/_orrery/cluster/nodes?node=%s", "Node '%s' is forgotten.", NULL},
    {"move",
     "makes a node the owner of a partition, and of those that share its throughput; RANGE is "
     "DATABASE/CONTAINER/ID, with the id of a partition key range, or the number of a space",
     2, "a range and a node", CLIENT_POST, "/_orrery/cluster/move?space=%s&node=%s", NULL,
     cluster_view_print_move},
    {"upgrade",
     "has the cluster write the newest format that all its nodes read, after the last of them was "
     "started with a newer program; older programs cannot join from then on",
     0, NULL, CLIENT_POST, "/_orrery/cluster/upgrade", NULL, cluster_view_print_upgrade},
    {"recover",
     "has the node that is asked give up its copy of a partition that holds writes which the "
     "engine has lost, and follow what the journal has; 0 for all such partitions",
     1, "a space, or 0", CLIENT_POST, "/_orrery/cluster/recover?space=%s",
     "The node follows the journal again in space %s.", NULL},
};

typedef struct ClusterApp {
    ClusterArguments arguments;
    const Action *action;
    const char *operands[2];
    Arena arena;
    Client *client;
} ClusterApp;

static bool word_at(size_t index, CommandWord *out)
{
    if (index >= ARRAY_COUNT(ACTIONS))
        return false;
    *out = (CommandWord){"Actions", ACTIONS[index].word, ACTIONS[index].help};
    return true;
}

const Command CLUSTER_COMMAND = {
    .name = "cluster",
    .summary = "make a cluster of several nodes, and look after it",
    .usage = "cluster secret > FILE\n"
             "cluster adopt --data DIR --cluster URL ...   [options]\n"
             "cluster status               [options]\n"
             "cluster drain | undrain NODE [options]\n"
             "cluster remove NODE          [options]\n"
             "cluster move RANGE NODE      [options]\n"
             "cluster upgrade              [options]\n"
             "cluster recover SPACE        [options]",
    .about =
        "Makes the secret that the nodes of a cluster share, makes a cluster of the data of one "
        "server, shows the nodes, and tells them what to do. A node is a server that was started "
        "with --cluster; docs/cluster.md says "
        "how. Any node can be asked.",
    .word = word_at,
    .options = &TABLE,
    .notes =
        "The exit code is 0 if it was done, 1 if it failed, and 2 if it was called in a wrong way.",
    .examples =
        "orrery cluster secret > cluster.secret\n"
        "orrery cluster adopt --data /var/lib/orrery --cluster postgresql://db1,db2/orrery \\\n"
        "    --cluster-secret cluster.secret --node a --advertise http://10.0.0.1:8081\n"
        "orrery cluster status --endpoint http://10.0.0.1:8081\n"
        "orrery cluster drain b\n"
        "orrery cluster move shop/orders/0 c\n",
    .main = cluster_main,
};

/* ---- arguments ---- */

static Status take_action(ClusterApp *app, const char *word, Error *err)
{
    const char *names[ARRAY_COUNT(ACTIONS) + 1] = {NULL};
    for (size_t i = 0; i < ARRAY_COUNT(ACTIONS); i++) {
        names[i] = ACTIONS[i].word;
        if (strcmp(word, names[i]) == 0) {
            app->action = &ACTIONS[i];
            return STATUS_OK;
        }
    }
    const char *nearest = options_nearest(word, names);
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "'%.80s' is not understood; %s%s%s", word,
                     nearest == NULL ? "'orrery cluster --help' lists what there is"
                                     : "did you mean '",
                     nearest == NULL ? "" : nearest, nearest == NULL ? "" : "'?");
}

static Status take_words(ClusterApp *app, const ArgumentList *words, Error *err)
{
    if (words->count == 0)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "say what to do, such as: orrery cluster status");
    TRY(take_action(app, words->items[0], err));
    if (words->count != (size_t)app->action->operands + 1)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "%s takes %s", app->action->word,
                         app->action->expected == NULL ? "no words" : app->action->expected);
    for (size_t i = 1; i < words->count; i++) {
        if (words->items[i][0] == '\0')
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "%s must not be empty",
                             app->action->expected);
        app->operands[i - 1] = words->items[i];
    }
    return STATUS_OK;
}

/* Nothing that was given is ignored. */
static Status check_options(const ClusterApp *app, Error *err)
{
    const ClusterArguments *a = &app->arguments;
    const char *const of_adopt[] = {a->data, a->cluster, a->cluster_secret, a->node, a->advertise};
    size_t given = 0;
    for (size_t i = 0; i < ARRAY_COUNT(of_adopt); i++)
        given += of_adopt[i] != NULL;
    bool adopts = app->action->word == ADOPT;
    if (!adopts && (given > 0 || a->allow_weak_engine))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--data, --cluster, --cluster-secret, --node, --advertise and "
                         "--allow-weak-engine are options of adopt");
    if (adopts && given < ARRAY_COUNT(of_adopt))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "adopt needs --data DIR, --cluster URL, --cluster-secret FILE, --node "
                         "NAME and --advertise URL, all of them");
    return STATUS_OK;
}

static Status open_client(ClusterApp *app, char *const *environment, Error *err)
{
    const ClusterArguments *a = &app->arguments;
    if (a->insecure && a->cert != NULL)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--insecure and --cert exclude each other; give one of them");
    ClientOptions options = {
        .endpoint = a->endpoint,
        .cert_file = a->cert,
        .is_insecure = a->insecure,
        .timeout_ms = TIMEOUT_MS,
    };
    TRY(connection_choose_key(a->key, a->key_file, &app->arena, environment, &options.key, err));
    return client_open(&options, &app->client, err);
}

static Status parse(ClusterApp *app, int argc, char *const *argv, char *const *environment,
                    bool *help, Error *err)
{
    ArgumentList words = {0};
    TRY(arguments_parse(&TABLE, &app->arena, argc, argv, &app->arguments, &words, help, err));
    if (*help)
        return STATUS_OK;
    if (app->arguments.cluster != NULL) /* what is in argv is hidden: see cluster_main */
        app->arguments.cluster = arena_cstr(&app->arena, slice_from_cstr(app->arguments.cluster));
    TRY(take_words(app, &words, err));
    TRY(check_options(app, err));
    return app->action->path == NULL ? STATUS_OK : open_client(app, environment, err);
}

/* ---- what is done ---- */

static Status print_secret(void)
{
    uint8_t secret[CLUSTER_SECRET_BYTES];
    char text[BASE64_LEN(CLUSTER_SECRET_BYTES)];
    random_secret(secret, sizeof(secret));
    base64_encode(BASE64_STANDARD, secret, sizeof(secret), text);
    (void)printf("%.*s\n", (int)sizeof(text), text);
    if (!isatty(STDOUT_FILENO))
        (void)fprintf(stderr, "orrery: keep the file to yourself (chmod 600) and copy it to each "
                              "node\n");
    return STATUS_OK;
}

static Status adopt(ClusterApp *app, Error *err)
{
    const ClusterArguments *a = &app->arguments;
    ClusterAdoptOptions options = {
        .data = a->data,
        .cluster = a->cluster,
        .secret = a->cluster_secret,
        .node = a->node,
        .advertise = a->advertise,
        .allows_weak_engine = a->allow_weak_engine,
        .to = stdout,
    };
    return cluster_adopt(&options, err);
}

/* 'format' with its operands, percent-encoded if they are part of a path. */
static Slice fill_in(ClusterApp *app, const char *format, bool is_path)
{
    Slice texts[2] = {SLICE_EMPTY, SLICE_EMPTY};
    for (int i = 0; i < app->action->operands; i++) {
        Slice operand = slice_from_cstr(app->operands[i]);
        texts[i] = is_path ? percent_encode(&app->arena, operand, SLICE("-_.~")) : operand;
    }
    AUTO(buf_done) Buf text;
    buf_init(&text, 4096);
    size_t next = 0;
    for (const char *c = format; *c != '\0'; c++) {
        if (c[0] != '%' || c[1] != 's') {
            buf_byte(&text, (uint8_t)*c);
            continue;
        }
        buf_slice(&text, texts[next++]);
        c++;
    }
    return arena_copy(&app->arena, buf_view(&text));
}

static Status ask(ClusterApp *app, ClientMethod method, Slice path, Arena *arena, Slice *body,
                  Error *err)
{
    ClientCall call = {.method = method, .path = path, .arena = arena};
    ClientCall *ended = NULL;
    client_start(app->client, &call);
    do
        TRY(client_wait(app->client, -1, &ended, err));
    while (ended != NULL);
    if (call.error.status != STATUS_OK) {
        *err = call.error;
        return err->status;
    }
    *body = call.body;
    return call.http_status >= 200 && call.http_status < 300 ? STATUS_OK
                                                             : connection_refused(&call, err);
}

static Status count_owned(ClusterApp *app, const char *node, long long *owned, Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    Slice body;
    TRY(ask(app, CLIENT_GET, SLICE("/_orrery/cluster"), &arena, &body, err));
    return cluster_view_owned(&arena, body, slice_from_cstr(node), owned, err);
}

/* The node gives one partition after the other away, also when nobody waits for it. */
static Status wait_until_drained(ClusterApp *app, Error *err)
{
    const char *node = app->operands[0];
    long long before = -1;
    long long owned = 0;
    for (int i = 0; i < DRAIN_LOOKS_MAX; i++) {
        TRY(count_owned(app, node, &owned, err));
        if (owned == 0) {
            (void)printf("Node '%s' owns no partitions any more.\n", node);
            return STATUS_OK;
        }
        if (owned != before)
            (void)fprintf(stderr, "orrery: node '%s' owns %lld partitions\n", node, owned);
        before = owned;
        (void)sleep(DRAIN_PAUSE_S);
    }
    (void)printf(
        "Node '%s' still owns %lld partitions. It goes on giving them away as soon as other "
        "nodes have copies; `orrery cluster status` shows how far it is.\n",
        node, owned);
    return STATUS_OK;
}

static Status run(ClusterApp *app, Error *err)
{
    if (app->action->word == ADOPT)
        return adopt(app, err);
    if (app->action->path == NULL)
        return print_secret();
    Slice body;
    TRY(ask(app, app->action->method, fill_in(app, app->action->path, true), &app->arena, &body,
            err));
    if (app->action->done != NULL) {
        Slice done = fill_in(app, app->action->done, false);
        (void)printf("%.*s\n", SLICE_ARG(done));
        return app->action->word == DRAIN ? wait_until_drained(app, err) : STATUS_OK;
    }
    if (app->arguments.json) {
        (void)printf("%.*s\n", SLICE_ARG(body));
        return STATUS_OK;
    }
    return app->action->show(&app->arena, body, stdout, err);
}

int cluster_main(int argc, char *const *argv, char *const *environment)
{
    ClusterApp app = {0};
    Error err;
    bool help = false;
    arena_init(&app.arena, 4096);
    Status status = parse(&app, argc, argv, environment, &help, &err);
    bool is_understood = status == STATUS_OK;
    options_hide(argc, argv, environment);
    if (help)
        command_print_help(&CLUSTER_COMMAND, stdout);
    else if (is_understood)
        status = run(&app, &err);
    if (status != STATUS_OK)
        (void)fprintf(stderr, "orrery: %s\n", err.message);
    client_close(app.client);
    arena_done(&app.arena);
    return status == STATUS_OK ? EXIT_SUCCESS : is_understood ? EXIT_FAILURE : EXIT_USAGE;
}
