#include "base/gunzip.h"

#include <limits.h>
#include <string.h>
#include <zlib.h>

enum { PIECE = 1 << 15 };
/* Added to zlib's number of window bits, makes inflate() accept only gzip's format, and not zlib's own. */
enum { GZIP_ONLY = 16 };

bool gunzip_is_packed(const struct text *text)
{
    return text->size >= 2 && memcmp(text->data, "\x1f\x8b", 2) == 0;
}

/* Unpacks all members of a gzip file into `out`. Returns Z_STREAM_END if all is unpacked, Z_BUF_ERROR if
 * `out` gets longer than `limit` bytes, else zlib's error. */
static int inflate_text(z_stream *stream, const struct text *text, struct text *out, size_t limit)
{
    static const size_t most = UINT_MAX;
    unsigned char piece[PIECE];
    size_t begin = 0; /* text[begin..] has not been given to the stream yet */
    int result = Z_OK;
    for (;;) {
        if (stream->avail_in == 0 && begin < text->size) {
            size_t left = text->size - begin, given = left < most ? left : most;
            stream->next_in = (unsigned char *)text->data + begin;
            stream->avail_in = (unsigned)given;
            begin += given;
        }
        stream->next_out = piece;
        stream->avail_out = sizeof piece;
        result = inflate(stream, Z_NO_FLUSH);
        text_append(out, (const char *)piece, sizeof piece - stream->avail_out);
        if (out->size > limit)
            return Z_BUF_ERROR;
        if (result == Z_STREAM_END && stream->avail_in == 0 && begin == text->size)
            return Z_STREAM_END;
        if (result == Z_STREAM_END)
            result = inflateReset(stream);
        if (result != Z_OK)
            return result;
    }
}

enum status gunzip(struct text *text, size_t limit, struct loc at, struct diag *diag)
{
    z_stream stream = {0};
    struct text out = {0};
    int result = inflateInit2(&stream, MAX_WBITS + GZIP_ONLY);
    if (result == Z_OK) {
        result = inflate_text(&stream, text, &out, limit);
        inflateEnd(&stream);
    }
    if (result == Z_STREAM_END) {
        text_release(text);
        *text = out;
        return STATUS_OK;
    }
    bool large = out.size > limit;
    text_release(&out);
    if (large)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "is packed by gzip and holds more than %zu bytes, the most that is read",
                          limit);
    return diag_error(
        diag, at, STATUS_BAD_INPUT,
        "is packed by gzip but damaged or cut short; `gzip -t` says whether a copy is whole");
}
