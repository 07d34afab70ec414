/* trie.h - an ordered map from 64-bit keys to shared objects, of which copies are free.
 *
 * A copy shares everything with the original; a change copies only the path from the root to what
 * changed, and not even that if no copy shares it. So a writer keeps one trie, publishes a
 * copy after each group of changes, and readers walk their copy without any lock.
 *
 * Ownership  A trie holds one reference on each value, taken over in trie_put and given back
 *            through 'unref'.
 * Threads    A Trie variable belongs to one thread. Copies of it may be read, changed and released
 *            by other threads: counts are atomic and shared nodes are never written.
 */
#pragma once

#include "base/defs.h"

typedef struct TrieNode TrieNode;

/* Gives back one reference on a value. */
typedef void (*TrieUnref)(void *value);

typedef struct Trie {
    TrieNode *root; /* NULL if empty */
    size_t count;
    TrieUnref unref;
} Trie;

void trie_init(Trie *trie, TrieUnref unref);
void trie_done(Trie *trie);
Trie trie_copy(const Trie *trie);

/* The value at 'key', or NULL; borrowed as long as this trie holds it. */
void *trie_get(const Trie *trie, uint64_t key);

/* Takes over one reference on 'value', which is not NULL; an older value at 'key' is given back. */
void trie_put(Trie *trie, uint64_t key, void *value);

/* True if there was something at 'key'. */
bool trie_remove(Trie *trie, uint64_t key);

/* The entry with the smallest key >= '*key': sets '*key' to it and returns its value, or returns
 * NULL if there is none. A walk:  for (uint64_t k = 0; (v = trie_next(t, &k)) != NULL; k++)
 * (stop after UINT64_MAX). */
void *trie_next(const Trie *trie, uint64_t *key);
