// simdjson.cc - see simdjson_int.h.
//
// The DOM interface of simdjson, not the on-demand one: the DOM parser is chosen at run time for
// the CPU at hand, while the on-demand one is compiled into this file for the CPU that the package
// is built for, which is the oldest. We do not build a DOM from it but read its tape.
//
// A parser is kept per thread. It needs about twenty times the memory of the text, and taking that
// from the heap for each request costs more than parsing; what a large text needed is given back
// at once, so an idle thread keeps a few megabytes at most.
#include "json/simdjson_int.h"

#include <charconv>
#include <cstring>
#include <memory>
#include <simdjson.h>
#include <system_error>

namespace
{

constexpr size_t KEPT_BYTES_MAX = 128 << 10;
constexpr size_t DEPTH_MAX = 256; // beyond JSON_DEPTH_MAX, so that our own check reports it

class TextParser
{
  public:
    TapeResult parse(const char *text, size_t len, Tape *out)
    {
        if ((capacity_ == 0 || len > capacity_) && !allocate(len))
            return TAPE_NO_MEMORY;
        if (len > 0)
            std::memcpy(padded_.get(), text, len);
        std::memset(padded_.get() + len, ' ', simdjson::SIMDJSON_PADDING);
        auto error = parser_.parse(padded_.get(), len, false).error();
        if (error == simdjson::MEMALLOC)
            return TAPE_NO_MEMORY;
        if (error != simdjson::SUCCESS)
            return TAPE_REFUSED;
        *out = Tape{parser_.doc.tape.get(), parser_.doc.string_buf.get()};
        return TAPE_OK;
    }

    void release()
    {
        if (capacity_ <= KEPT_BYTES_MAX)
            return;
        capacity_ = 0;
        padded_.reset();
        parser_ = simdjson::dom::parser();
    }

  private:
    bool allocate(size_t len)
    {
        size_t capacity = 4096;
        while (capacity < len)
            capacity *= 2;
        capacity_ = 0;
        padded_.reset(new char[capacity + simdjson::SIMDJSON_PADDING]);
        if (parser_.allocate(capacity, DEPTH_MAX) != simdjson::SUCCESS ||
            parser_.doc.allocate(capacity) != simdjson::SUCCESS)
            return false;
        capacity_ = capacity;
        return true;
    }

    simdjson::dom::parser parser_;
    std::unique_ptr<char[]> padded_;
    size_t capacity_ = 0;
};

thread_local TextParser text_parser;

} // namespace

extern "C" TapeResult tape_parse(const char *text, size_t len, Tape *out)
{
    try {
        return text_parser.parse(text, len, out);
    } catch (...) {
        return TAPE_NO_MEMORY; // nothing else is thrown there
    }
}

extern "C" void tape_release(void)
{
    try {
        text_parser.release();
    } catch (...) {
        return; // what could not be given back is still owned and is tried again next time
    }
}

extern "C" size_t double_to_text(double value, char out[DOUBLE_TEXT_MAX])
{
    auto end = std::to_chars(out, out + DOUBLE_TEXT_MAX, value, std::chars_format::scientific).ptr;
    return static_cast<size_t>(end - out);
}

extern "C" DoubleResult double_from_text(const char *text, size_t len, double *out)
{
    try {
        auto [end, code] = std::from_chars(text, text + len, *out);
        if (end != text + len || code == std::errc::invalid_argument)
            return DOUBLE_MALFORMED;
        return code == std::errc() ? DOUBLE_OK : DOUBLE_OUT_OF_RANGE;
    } catch (...) {
        return DOUBLE_MALFORMED;
    }
}
