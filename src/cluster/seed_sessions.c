/* seed_sessions.c - copies of this node's spaces that others are reading, piece by piece.
 *
 *     answer = | session u64 BE | is last u8 | piece |
 *
 * Session 0 opens one and gives the piece 0. A reader asks for the pieces in order; the newest
 * piece is kept, so that it can be asked for again when its answer was lost. A session that nobody
 * has asked for in a while is closed, because its snapshot keeps old data on the disk. One whose
 * last piece was given makes room for a new one at once: a node may want many small copies.
 */
#include "cluster/cluster_int.h"

#include "base/encoding.h"
#include "base/mem.h"
#include "base/random.h"

enum { SESSIONS_MAX = 4, PIECE_BYTES = 1 << 20, PIECE_BYTES_MAX = 15 << 20, IDLE_US = 30000000 };

typedef struct SeedSession {
    uint64_t id; /* 0 if it is free */
    StoreSpace space;
    SeedSource *source;
    uint64_t next; /* number of the piece after the kept one */
    bool is_last;  /* the kept piece is the last */
    Buf kept;
    uint64_t used_us; /* boot time */
} SeedSession;

struct SeedSessions {
    Cluster *cluster;
    SeedSession items[SESSIONS_MAX];
};

SeedSessions *seed_sessions_new(Cluster *cluster)
{
    SeedSessions *sessions = MEM_NEW(SeedSessions);
    sessions->cluster = cluster;
    return sessions;
}

static void close_session(SeedSessions *sessions, SeedSession *session)
{
    if (session->id == 0)
        return;
    sessions->cluster->store.source_close(session->source);
    buf_done(&session->kept);
    *session = (SeedSession){0};
}

void seed_sessions_free(SeedSessions *sessions)
{
    if (sessions == NULL)
        return;
    for (size_t i = 0; i < SESSIONS_MAX; i++)
        close_session(sessions, &sessions->items[i]);
    mem_free(sessions);
}

/* A free place, or that of the session which was read whole the longest ago; NULL if all are being
 * read. */
static SeedSession *make_room(SeedSessions *sessions)
{
    uint64_t now_us = cluster_now_us(sessions->cluster);
    SeedSession *best = NULL;
    for (size_t i = 0; i < SESSIONS_MAX; i++) {
        SeedSession *session = &sessions->items[i];
        if (session->id != 0 && now_us - session->used_us > IDLE_US)
            close_session(sessions, session);
        if (session->id == 0)
            return session;
        if (session->is_last && (best == NULL || session->used_us < best->used_us))
            best = session;
    }
    if (best != NULL)
        close_session(sessions, best);
    return best;
}

static Status open_session(SeedSessions *sessions, StoreSpace space, SeedSession **out, Error *err)
{
    SeedSession *free_one = make_room(sessions);
    if (free_one == NULL)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "%d copies are being read already",
                         SESSIONS_MAX);
    ClusterStore *store = &sessions->cluster->store;
    TRY(store->source_open(store->ctx, space, &free_one->source, err));
    do
        random_secret(&free_one->id, sizeof(free_one->id));
    while (free_one->id == 0);
    free_one->space = space;
    buf_init(&free_one->kept, PIECE_BYTES_MAX);
    *out = free_one;
    return STATUS_OK;
}

static SeedSession *find_session(SeedSessions *sessions, uint64_t id, StoreSpace space)
{
    for (size_t i = 0; i < SESSIONS_MAX; i++) {
        if (sessions->items[i].id == id && sessions->items[i].space == space)
            return &sessions->items[i];
    }
    return NULL;
}

Status seed_sessions_answer(SeedSessions *sessions, StoreSpace space, uint64_t id, uint64_t piece,
                            Buf *out, Error *err)
{
    SeedSession *session = NULL;
    if (id == 0 && piece == 0)
        TRY(open_session(sessions, space, &session, err));
    else
        session = id != 0 ? find_session(sessions, id, space) : NULL;
    if (session == NULL)
        return error_set(err, STATUS_NOT_FOUND, SUB_NONE, "the copy is not being read any more");
    session->used_us = cluster_now_us(sessions->cluster);
    if (piece == session->next && !session->is_last) {
        buf_reset(&session->kept);
        Status status = sessions->cluster->store.source_next(
            session->source, PIECE_BYTES, &session->kept, &session->is_last, err);
        if (status == STATUS_OK && buf_full(&session->kept))
            status = error_set(err, STATUS_TOO_LARGE, SUB_NONE, "a piece has more than %d bytes",
                               PIECE_BYTES_MAX);
        if (status != STATUS_OK) {
            close_session(sessions, session);
            return status;
        }
        session->next++;
    } else if (piece + 1 != session->next) {
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "expected piece %llu, found %llu",
                         (unsigned long long)session->next, (unsigned long long)piece);
    }
    uint8_t head[9];
    be64_put(head, session->id);
    head[8] = session->is_last;
    buf_bytes(out, head, sizeof(head));
    buf_slice(out, buf_view(&session->kept));
    return STATUS_OK;
}
