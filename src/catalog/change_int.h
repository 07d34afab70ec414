/* change_int.h - applies changes to a group, on the catalogue's thread. */
#pragma once

#include "catalog/catalog.h"
#include "catalog/catalog_load_int.h"
#include "catalog/cleaner_int.h"
#include "catalog/record_int.h"

void container_list_add(ContainerList *list, const Container *container); /* makes a reference */
void container_list_cut(ContainerList *list, size_t count); /* releases all but the first ones */
void container_list_clear(ContainerList *list);             /* keeps its memory */

/* A group of changes being applied: the catalogue's thread only. */
typedef struct Work {
    PartitionHost *host;
    const ProvisionRules *rules;
    Snapshot *snapshot; /* private copy */
    StoreTxn *txn;
    CatalogCounters *counters;
    ContainerList *dropped; /* by the group */
    ContainerList *kept;    /* likewise, but saved states have them */
    GarbageList *freed;     /* spaces of containers that no saved state has any more */
    Cleaner *cleaner;
    const CatalogPlacement *placement; /* NULL if there is none */
    int64_t now_s;
    uint64_t now_us; /* monotonic */
    bool takes_room; /* the group has other changes than drops */
    Error full;      /* why such changes are refused; STATUS_OK if the disk is not full (I7) */
} Work;

/* Applies one change to the group, or leaves the group as it was and fills the change's error. */
void change_apply(Work *work, CatalogChange *change);

/* The three steps of a move (change_move.c). */
MUST_USE Status change_begin_move(Work *work, CatalogChange *change, Error *err);
MUST_USE Status change_end_move(Work *work, CatalogChange *change, Error *err);
MUST_USE Status change_undo_move(Work *work, CatalogChange *change, Error *err);

/* The three steps of a swap (change_swap.c). */
MUST_USE Status change_begin_swap(Work *work, CatalogChange *change, Error *err);
MUST_USE Status change_end_swap(Work *work, CatalogChange *change, Error *err);
MUST_USE Status change_undo_swap(Work *work, CatalogChange *change, Error *err);

/* Scripts (change_script.c). The last one deletes the records of all scripts of a container that is
 * dropped. */
MUST_USE Status change_create_script(Work *work, CatalogChange *change, Error *err);
MUST_USE Status change_replace_script(Work *work, CatalogChange *change, Error *err);
MUST_USE Status change_delete_script(Work *work, CatalogChange *change, Error *err);
void change_drop_scripts(Work *work, const Container *container);

/* Users and permissions (change_user.c). The last one deletes the records of all users of a
 * database that is dropped, and of their permissions. */
MUST_USE Status change_create_user(Work *work, CatalogChange *change, Error *err);
MUST_USE Status change_replace_user(Work *work, CatalogChange *change, Error *err);
MUST_USE Status change_delete_user(Work *work, CatalogChange *change, Error *err);
MUST_USE Status change_create_permission(Work *work, CatalogChange *change, Error *err);
MUST_USE Status change_replace_permission(Work *work, CatalogChange *change, Error *err);
MUST_USE Status change_delete_permission(Work *work, CatalogChange *change, Error *err);
void change_drop_users(Work *work, uint32_t database);

/* Saved states (change_saved.c): all that are done with them. */
MUST_USE Status change_saved_state(Work *work, CatalogChange *change, Error *err);

/* What they share with others: a container that goes, unless a saved state has it; an offer (0 for
 * none); a database whose containers are gone. */
void change_drop_container(Work *work, const Container *container);
void change_drop_offer(Work *work, uint32_t number);
void change_drop_database(Work *work, const Database *database);

/* What the kinds of changes have in common. */
MUST_USE Status change_not_found(Error *err, const char *what);
MUST_USE Status change_owner_not_found(Error *err, const char *what);
MUST_USE Status change_id_exists(Error *err, const char *what, Slice id);
MUST_USE Status change_name_collision(Error *err);
/* Gives out a number once (I3). */
MUST_USE Status change_take_number(uint32_t *next, uint32_t max, uint32_t *out, Error *err);
MUST_USE Status change_take_spaces(Work *work, size_t count, StoreSpace *first, Error *err);
/* Has the placement, if there is one, choose who serves new spaces: beside the owner of another
 * space, unless that is 0. Before their partitions are opened. */
MUST_USE Status change_place_spaces(const Work *work, StoreSpace first, size_t count,
                                    StoreSpace beside, Error *err);
void change_put_garbage(Work *work, const PartitionRange *ranges, size_t count);

/* Notes with the offer of a container, before partitions of the container go, the most that they
 * ever held (I14). This makes no new version of the offer. */
void change_note_storage(Work *work, const Container *container);
