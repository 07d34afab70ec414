/* schema.c - see schema.h. */
#include "partition/schema.h"

#include "base/mem.h"

PartitionSchema *schema_new(void)
{
    PartitionSchema *schema = MEM_NEW(PartitionSchema);
    atomic_init(&schema->refs, 1);
    arena_init(&schema->arena, 512);
    return schema;
}

PartitionSchema *schema_ref(PartitionSchema *schema)
{
    atomic_fetch_add_explicit(&schema->refs, 1, memory_order_relaxed);
    return schema;
}

void schema_unref(PartitionSchema *schema)
{
    if (schema == NULL || atomic_fetch_sub_explicit(&schema->refs, 1, memory_order_acq_rel) > 1)
        return;
    arena_done(&schema->arena);
    mem_free(schema);
}
