// wal_files.cc - see wal_files_int.h.
//
// A log that grows with each write makes each sync write two things: the new bytes and the file's
// new size, elsewhere on the disk, through the journal of the file system if it has one. So the log
// is written with zeros a piece ahead, and what is appended replaces them: most syncs then write
// only the bytes. Measured here (ext4 without journal): 145 us instead of 212 for 16 KB.
//
// RocksDB passes over zeros after the last record up to the end of the log, and so does
// wal_scan.c. It would also pass over zeros before a record, so this is only for logs that are
// synced after each group (R8): where several groups are under way to the disk, a loss of power may
// leave the zeros of one and all of a later one. A log that is closed is cut to what was written.
#include "store/rocksdb/wal_files_int.h"

#include "base/thread_background.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <optional>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/utilities/object_registry.h>
#include <string>
#include <unistd.h>
#include <utility>

namespace
{

using rocksdb::FileOptions;
using rocksdb::FSSequentialFile;
using rocksdb::FSWritableFile;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

constexpr uint64_t PIECE_BYTES = 256 << 10;
constexpr size_t STEP_BYTES = 32 << 10;
constexpr char NAME[] = "orrery_log_files";

struct FileId {
    SyncKind kind;
    uint64_t number;
};

// A path without slashes that say nothing: "a//b/" is "a/b".
std::string plain_path(const std::string &path)
{
    std::string plain;
    for (char c : path) {
        if (c != '/' || plain.empty() || plain.back() != '/')
            plain.push_back(c);
    }
    while (plain.size() > 1 && plain.back() == '/')
        plain.pop_back();
    return plain;
}

// "000012.log" and "MANIFEST-000005" in 'folder', which is a plain path; nothing for any other
// file. A checkpoint has files of the same names in a folder of its own.
std::optional<FileId> file_id(const std::string &folder, const std::string &path)
{
    if (plain_path(path.substr(0, path.find_last_of('/') + 1)) != folder)
        return std::nullopt;
    constexpr char manifest[] = "MANIFEST-";
    const char *name = path.c_str() + path.find_last_of('/') + 1;
    bool is_manifest = std::strncmp(name, manifest, sizeof(manifest) - 1) == 0;
    const char *digits = is_manifest ? name + sizeof(manifest) - 1 : name;
    char *end = nullptr;
    uint64_t number = std::strtoull(digits, &end, 10);
    if (end == digits || std::strcmp(end, is_manifest ? "" : ".log") != 0)
        return std::nullopt;
    return FileId{is_manifest ? SYNC_MANIFEST : SYNC_LOG, number};
}

// A log or a MANIFEST that is being written. 'fd' is a second one on the same file, for the room
// ahead of its end; -1 if it has none.
class MarkedFile : public rocksdb::FSWritableFileOwnerWrapper
{
  public:
    MarkedFile(std::unique_ptr<FSWritableFile> file, FileId id, SyncMarks *marks, int fd)
        : FSWritableFileOwnerWrapper(std::move(file)), id_(id), marks_(marks), fd_(fd)
    {
    }
    MarkedFile(const MarkedFile &) = delete;
    MarkedFile &operator=(const MarkedFile &) = delete;
    ~MarkedFile() override
    {
        if (fd_ >= 0)
            ::close(fd_);
    }

    IOStatus Append(const rocksdb::Slice &data, const IOOptions &options,
                    IODebugContext *debug) override
    {
        make_room(data.size());
        IOStatus status = FSWritableFileOwnerWrapper::Append(data, options, debug);
        if (status.ok())
            written_ += data.size();
        return status;
    }

    IOStatus Append(const rocksdb::Slice &data, const IOOptions &options,
                    const rocksdb::DataVerificationInfo & /*verification*/,
                    IODebugContext *debug) override
    {
        return Append(data, options, debug);
    }

    IOStatus Sync(const IOOptions &options, IODebugContext *debug) override
    {
        uint64_t bytes = written_;
        return note(bytes, FSWritableFileOwnerWrapper::Sync(options, debug));
    }

    IOStatus Fsync(const IOOptions &options, IODebugContext *debug) override
    {
        uint64_t bytes = written_;
        return note(bytes, FSWritableFileOwnerWrapper::Fsync(options, debug));
    }

    IOStatus Close(const IOOptions &options, IODebugContext *debug) override
    {
        if (room_ > written_) // zeros that cannot be cut off do no harm
            FSWritableFileOwnerWrapper::Truncate(written_, options, debug).PermitUncheckedError();
        return FSWritableFileOwnerWrapper::Close(options, debug);
    }

  private:
    // The engine writes the mark of a log before it acknowledges. Nobody acknowledges a MANIFEST.
    IOStatus note(uint64_t bytes, IOStatus status)
    {
        if (status.ok())
            sync_marks_note(marks_, id_.kind, id_.number, bytes);
        if (id_.kind == SYNC_MANIFEST)
            sync_marks_write(marks_);
        return status;
    }

    // Only to save time: if this fails, because the disk is full, the append may still succeed, and
    // reports the error otherwise.
    void make_room(size_t bytes)
    {
        static const std::array<char, STEP_BYTES> zeros{};
        if (fd_ < 0 || written_ + bytes <= room_)
            return;
        // The zeros begin after the new bytes, so that those are written only once.
        uint64_t at = written_ + bytes;
        uint64_t end = at + PIECE_BYTES;
        for (; at < end; at += STEP_BYTES) {
            size_t step = std::min<uint64_t>(STEP_BYTES, end - at);
            if (::pwrite(fd_, zeros.data(), step, static_cast<off_t>(at)) !=
                static_cast<ssize_t>(step))
                break;
        }
        room_ = at;
        if (at < end && ::ftruncate(fd_, static_cast<off_t>(written_)) == 0)
            room_ = written_;
    }

    FileId id_;
    SyncMarks *marks_;
    int fd_;
    std::atomic<uint64_t> written_{0}; // atomic, because another thread may sync the file
    uint64_t room_ = 0;                // up to here the file has bytes
};

// RocksDB's report of its own work, for the rare post mortem. What cannot be written of it, because
// the disk is full, is left out: RocksDB ends the process when it reports after an error.
class ReportFile : public rocksdb::FSWritableFileOwnerWrapper
{
  public:
    using FSWritableFileOwnerWrapper::FSWritableFileOwnerWrapper;

    IOStatus Append(const rocksdb::Slice &data, const IOOptions &options,
                    IODebugContext *debug) override
    {
        return any(FSWritableFileOwnerWrapper::Append(data, options, debug));
    }

    IOStatus Append(const rocksdb::Slice &data, const IOOptions &options,
                    const rocksdb::DataVerificationInfo & /*verification*/,
                    IODebugContext *debug) override
    {
        return Append(data, options, debug);
    }

    IOStatus Flush(const IOOptions &options, IODebugContext *debug) override
    {
        return any(FSWritableFileOwnerWrapper::Flush(options, debug));
    }

    IOStatus Close(const IOOptions &options, IODebugContext *debug) override
    {
        return any(FSWritableFileOwnerWrapper::Close(options, debug));
    }

  private:
    static IOStatus any(const IOStatus &status)
    {
        status.PermitUncheckedError();
        return IOStatus::OK();
    }
};

bool is_report(const std::string &path)
{
    return path.compare(path.find_last_of('/') + 1, std::string::npos, "LOG") == 0;
}

// A log of which only the beginning counts.
class EndedFile : public rocksdb::FSSequentialFileOwnerWrapper
{
  public:
    EndedFile(std::unique_ptr<FSSequentialFile> file, uint64_t bytes)
        : FSSequentialFileOwnerWrapper(std::move(file)), left_(bytes)
    {
    }

    IOStatus Read(size_t size, const IOOptions &options, rocksdb::Slice *result, char *scratch,
                  IODebugContext *debug) override
    {
        IOStatus status = FSSequentialFileOwnerWrapper::Read(std::min<uint64_t>(size, left_),
                                                             options, result, scratch, debug);
        if (status.ok())
            left_ -= result->size();
        return status;
    }

    IOStatus Skip(uint64_t bytes) override
    {
        bytes = std::min(bytes, left_);
        left_ -= bytes;
        return FSSequentialFileOwnerWrapper::Skip(bytes);
    }

  private:
    uint64_t left_;
};

class WalFileSystem : public rocksdb::FileSystemWrapper
{
  public:
    explicit WalFileSystem(const WalFilesOptions &options)
        : FileSystemWrapper(rocksdb::FileSystem::Default()), folder_(plain_path(options.folder)),
          marks_(options.marks), is_relaxed_(options.is_relaxed)
    {
    }
    WalFileSystem(const WalFileSystem &) = delete;
    WalFileSystem &operator=(const WalFileSystem &) = delete;
    ~WalFileSystem() override
    {
        if (lock_ != nullptr)
            UnlockFile(lock_, IOOptions(), nullptr).PermitUncheckedError();
    }

    IOStatus take_lock(const std::string &folder)
    {
        return FileSystemWrapper::LockFile(folder + "/LOCK", IOOptions(), &lock_, nullptr);
    }

    void set_end(WalEnd end)
    {
        end_ = end;
    }

    const char *Name() const override
    {
        return "OrreryLogFiles";
    }

    IOStatus NewWritableFile(const std::string &path, const FileOptions &options,
                             std::unique_ptr<FSWritableFile> *file, IODebugContext *debug) override
    {
        std::optional<FileId> id = file_id(folder_, path);
        bool is_log = id && id->kind == SYNC_LOG;
        IOStatus status = FileSystemWrapper::NewWritableFile(path, options, file, debug);
        if (status.ok() && is_report(path))
            *file = std::make_unique<ReportFile>(std::move(*file));
        if (!status.ok() || !id)
            return status;
        if (is_log)
            sync_marks_add_log(marks_, id->number, is_relaxed_);
        int fd = is_log && !is_relaxed_ ? ::open(path.c_str(), O_WRONLY | O_CLOEXEC) : -1;
        *file = std::make_unique<MarkedFile>(std::move(*file), *id, marks_, fd);
        return status;
    }

    // The usual one, but with a file of NewWritableFile above.
    IOStatus NewLogger(const std::string &path, const IOOptions &options,
                       std::shared_ptr<rocksdb::Logger> *logger, IODebugContext *debug) override
    {
        // NOLINTNEXTLINE(bugprone-parent-virtual-call)
        return FileSystem::NewLogger(path, options, logger, debug);
    }

    IOStatus NewSequentialFile(const std::string &path, const FileOptions &options,
                               std::unique_ptr<FSSequentialFile> *file,
                               IODebugContext *debug) override
    {
        IOStatus status = FileSystemWrapper::NewSequentialFile(path, options, file, debug);
        std::optional<FileId> id = file_id(folder_, path);
        if (status.ok() && end_ && id && id->kind == SYNC_LOG && id->number >= end_->number)
            *file = std::make_unique<EndedFile>(std::move(*file),
                                                id->number == end_->number ? end_->bytes : 0);
        return status;
    }

    IOStatus DeleteFile(const std::string &path, const IOOptions &options,
                        IODebugContext *debug) override
    {
        std::optional<FileId> id = file_id(folder_, path);
        if (id)
            sync_marks_remove(marks_, id->kind, id->number);
        return FileSystemWrapper::DeleteFile(path, options, debug);
    }

    IOStatus LockFile(const std::string &path, const IOOptions &options, rocksdb::FileLock **lock,
                      IODebugContext *debug) override
    {
        if (lock_ == nullptr)
            return FileSystemWrapper::LockFile(path, options, lock, debug);
        *lock = std::exchange(lock_, nullptr);
        return IOStatus::OK();
    }

  private:
    std::string folder_;
    SyncMarks *marks_;
    bool is_relaxed_;
    std::optional<WalEnd> end_;
    rocksdb::FileLock *lock_ = nullptr; // ours until the database asks for it
};

// RocksDB's flushes and compactions compute for long stretches. Its threads are the process's,
// shared by all environments, and each is set up when it first works for one of ours.
class BackgroundEnv : public rocksdb::EnvWrapper
{
  public:
    explicit BackgroundEnv(std::unique_ptr<rocksdb::Env> env)
        : EnvWrapper(env.get()), owned_(std::move(env))
    {
    }

    const char *Name() const override
    {
        return NAME;
    }

    void Schedule(void (*run)(void *), void *arg, Priority priority, void *tag,
                  void (*cancel)(void *)) override
    {
        auto *job = new Job{run, cancel, arg};
        EnvWrapper::Schedule(run_job, job, priority, tag, cancel_job);
    }

  private:
    struct Job {
        void (*run)(void *);
        void (*cancel)(void *); // nullptr if RocksDB need not know
        void *arg;
    };

    static void run_job(void *arg)
    {
        thread_local bool is_background = false;
        if (!is_background)
            thread_set_background();
        is_background = true;
        std::unique_ptr<Job> job(static_cast<Job *>(arg));
        job->run(job->arg);
    }

    static void cancel_job(void *arg)
    {
        std::unique_ptr<Job> job(static_cast<Job *>(arg));
        if (job->cancel != nullptr)
            job->cancel(job->arg);
    }

    std::unique_ptr<rocksdb::Env> owned_;
};

} // namespace

struct WalFiles {
    std::shared_ptr<WalFileSystem> system;
    std::unique_ptr<rocksdb::Env> env;
    std::string name;
};

// RocksDB's C interface takes no environment of ours, but finds one by its name. The name holds the
// address, since each store has its own.
static void register_env()
{
    static const bool registered = [] {
        rocksdb::ObjectLibrary::Default()->AddFactory<rocksdb::Env>(
            rocksdb::ObjectLibrary::PatternEntry(NAME, false).AddNumber("@"),
            [](const std::string &name, std::unique_ptr<rocksdb::Env> *, std::string *) {
                uintptr_t address = std::strtoull(name.c_str() + sizeof(NAME), nullptr, 10);
                return reinterpret_cast<WalFiles *>(address)->env.get();
            });
        return true;
    }();
    (void)registered;
}

WalFiles *wal_files_open(const WalFilesOptions *options)
{
    register_env();
    auto files = std::make_unique<WalFiles>();
    files->system = std::make_shared<WalFileSystem>(*options);
    files->env = std::make_unique<BackgroundEnv>(rocksdb::NewCompositeEnv(files->system));
    files->name =
        std::string(NAME) + "@" + std::to_string(reinterpret_cast<uintptr_t>(files.get()));
    return files.release();
}

bool wal_files_lock(WalFiles *files, const char *folder, char *reason, size_t size)
{
    IOStatus status = files->system->take_lock(folder);
    if (!status.ok())
        (void)std::snprintf(reason, size, "%s", status.ToString().c_str());
    return status.ok();
}

void wal_files_set_end(WalFiles *files, WalEnd end)
{
    files->system->set_end(end);
}

void wal_files_close(WalFiles *files)
{
    delete files;
}

const char *wal_files_env(const WalFiles *files)
{
    return files->name.c_str();
}
