// memtable.cc - makes RocksDB use a radix tree for its memtables: see radix_int.h.
#include "store/rocksdb/memtable_int.h"

#include "store/rocksdb/radix_int.h"

#include <memory>
#include <rocksdb/memtablerep.h>
#include <rocksdb/slice.h>
#include <rocksdb/utilities/object_registry.h>
#include <string>
#include <vector>

namespace
{

constexpr char NAME[] = "orrery_radix";

// RocksDB would place an iterator in an arena that its public headers do not describe, and then
// only call the destructor. So the memory is allocated here, and the destructor gives it back: to
// the same thread only, because the destructor may still write to it afterwards.
class Rooms
{
  public:
    Rooms() = default;
    Rooms(const Rooms &) = delete;
    Rooms &operator=(const Rooms &) = delete;
    ~Rooms()
    {
        for (void *room : free_)
            ::operator delete(room);
    }
    void *take(size_t bytes)
    {
        if (free_.empty())
            return ::operator new(bytes);
        void *room = free_.back();
        free_.pop_back();
        return room;
    }
    void give_back(void *room)
    {
        if (free_.size() == KEPT_MAX) {
            ::operator delete(free_.back());
            free_.pop_back();
        }
        free_.push_back(room);
    }

  private:
    static constexpr size_t KEPT_MAX = 64;

    std::vector<void *> free_;
};

thread_local Rooms rooms;

class Walk : public rocksdb::MemTableRep::Iterator
{
  public:
    explicit Walk(const Radix *radix, bool owns_room = true) : radix_(radix), owns_room_(owns_room)
    {
    }
    Walk(const Walk &) = delete;
    Walk &operator=(const Walk &) = delete;
    ~Walk() override
    {
        if (owns_room_)
            rooms.give_back(this);
    }
    static void *operator new(size_t bytes)
    {
        return rooms.take(bytes);
    }
    static void *operator new(size_t, void *room)
    {
        return room;
    }
    static void operator delete(void *) // the destructor has done it
    {
    }

    bool Valid() const override
    {
        return at_ != nullptr;
    }
    const char *key() const override
    {
        return radix_read(at_);
    }
    void Next() override
    {
        at_ = radix_next(radix_, at_, &path_);
    }
    void Prev() override
    {
        at_ = radix_prev(radix_, at_, &path_);
    }
    void Seek(const rocksdb::Slice &key, const char *entry) override
    {
        rocksdb::Slice target = entry != nullptr ? rocksdb::GetLengthPrefixedSlice(entry) : key;
        at_ = radix_at_or_after(radix_, target.data(), target.size(), &path_);
    }
    void SeekForPrev(const rocksdb::Slice &key, const char *entry) override
    {
        rocksdb::Slice target = entry != nullptr ? rocksdb::GetLengthPrefixedSlice(entry) : key;
        at_ = radix_at_or_before(radix_, target.data(), target.size(), &path_);
    }
    void SeekToFirst() override
    {
        at_ = radix_first(radix_, &path_);
    }
    void SeekToLast() override
    {
        at_ = radix_last(radix_, &path_);
    }

  private:
    const Radix *radix_;
    bool owns_room_;
    const RadixEntry *at_ = nullptr;
    RadixPath path_ = {}; // valid only if 'at_' is not null
};

class Table : public rocksdb::MemTableRep
{
  public:
    explicit Table(rocksdb::Allocator *allocator)
        : MemTableRep(allocator), radix_(radix_new(allocate_some, this))
    {
    }

    rocksdb::KeyHandle Allocate(size_t len, char **buf) override
    {
        RadixEntry *entry = radix_entry_new(radix_, len);
        *buf = radix_data(entry);
        return entry;
    }
    void Insert(rocksdb::KeyHandle handle) override
    {
        (void)InsertKey(handle);
    }
    bool InsertKey(rocksdb::KeyHandle handle) override
    {
        return radix_insert(radix_, static_cast<RadixEntry *>(handle));
    }
    bool Contains(const char *entry) const override
    {
        rocksdb::Slice target = rocksdb::GetLengthPrefixedSlice(entry);
        RadixPath path;
        const RadixEntry *found = radix_at_or_after(radix_, target.data(), target.size(), &path);
        return found != nullptr && radix_is(found, target.data(), target.size());
    }
    size_t ApproximateMemoryUsage() override
    {
        return 0; // all of it is counted by the allocator
    }
    rocksdb::MemTableRep::Iterator *GetIterator(rocksdb::Arena * /*arena*/) override
    {
        return new Walk(radix_);
    }
    // Get() asks for this one and never destroys it. It is done with one before it asks for the
    // next, since merging, which it calls in between, does not read. So one a thread is enough.
    rocksdb::MemTableRep::Iterator *GetDynamicPrefixIterator(rocksdb::Arena *arena) override
    {
        alignas(Walk) thread_local char room[sizeof(Walk)];
        return arena != nullptr ? GetIterator(arena) : new (room) Walk(radix_, false);
    }

  private:
    static void *allocate_some(void *ctx, size_t bytes)
    {
        char *room = nullptr;
        static_cast<Table *>(ctx)->MemTableRep::Allocate(bytes, &room);
        return room;
    }

    Radix *radix_;
};

class Factory : public rocksdb::MemTableRepFactory
{
  public:
    const char *Name() const override
    {
        return NAME;
    }
    using MemTableRepFactory::CreateMemTableRep;
    rocksdb::MemTableRep *CreateMemTableRep(const rocksdb::MemTableRep::KeyComparator & /*order*/,
                                            rocksdb::Allocator *allocator,
                                            const rocksdb::SliceTransform * /*transform*/,
                                            rocksdb::Logger * /*logger*/) override
    {
        return new Table(allocator);
    }
    bool CanHandleDuplicatedKey() const override
    {
        return true;
    }
};

} // namespace

const char *memtable_register(void)
{
    static const bool registered = [] {
        rocksdb::ObjectLibrary::Default()->AddFactory<rocksdb::MemTableRepFactory>(
            NAME, [](const std::string &, std::unique_ptr<rocksdb::MemTableRepFactory> *guard,
                     std::string *) {
                *guard = std::make_unique<Factory>();
                return guard->get();
            });
        return true;
    }();
    (void)registered;
    return NAME;
}
