/* tests/base/test_gunzip.c: a gzip file of any length and number of members is unpacked; a damaged one is reported. */
#include "base/gunzip.h"
#include "tests/check.h"

#include <string.h>
#include <zlib.h>

/* Appends a gzip member that holds the characters. */
static void pack(struct text *out, const char *data, size_t size)
{
    unsigned char member[4096];
    z_stream stream = {0};
    CHECK_INT("zlib", deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY),
              Z_OK);
    stream.next_in = (unsigned char *)data;
    stream.avail_in = (unsigned)size;
    stream.next_out = member;
    stream.avail_out = sizeof member;
    CHECK_INT("packed", deflate(&stream, Z_FINISH), Z_STREAM_END);
    text_append(out, (char *)member, sizeof member - stream.avail_out);
    deflateEnd(&stream);
}

static enum status gunzip_and_check_message(struct text *text, size_t limit, const char *message)
{
    struct diag diag = {0};
    enum status status = gunzip(text, limit, (struct loc){.name = "trace.json.gz"}, &diag);
    if (message != NULL)
        CHECK_TEXT("message", diag.text, message);
    diag_release(&diag);
    return status;
}

static void concatenated_gzip_members_are_read(void)
{
    struct text text = {0};
    pack(&text, "first ", 6);
    pack(&text, "", 0);
    pack(&text, "second", 6);
    CHECK("recognised", gunzip_is_packed(&text));
    CHECK_INT("unpacked", gunzip_and_check_message(&text, 100, NULL), STATUS_OK);
    CHECK_TEXT("both", text.data, "first second");
    CHECK("what is not packed is left alone", !gunzip_is_packed(&text));
    text_release(&text);
    CHECK("nor is nothing", !gunzip_is_packed(&text));
}

static void long_gzip_texts_are_unpacked(void)
{
    struct text text = {0}, want = {0};
    for (int i = 0; i < 100000; i++)
        text_puts(&want, "0123456789");
    pack(&text, want.data, want.size);
    CHECK_INT("unpacked", gunzip_and_check_message(&text, want.size, NULL), STATUS_OK);
    CHECK("the same", text.size == want.size && memcmp(text.data, want.data, want.size) == 0);
    text_release(&text);
    pack(&text, want.data, want.size);
    CHECK_INT("too much",
              gunzip_and_check_message(
                  &text, want.size - 1,
                  "trace.json.gz: error: is packed by gzip and holds more than 999999 bytes, "
                  "the most that is read\n"),
              STATUS_BAD_INPUT);
    text_release(&text);
    text_release(&want);
}

static void damaged_gzip_is_reported(void)
{
    static const char said[] =
        "trace.json.gz: error: is packed by gzip but damaged or cut short; `gzip -t` says whether "
        "a copy is whole\n";
    struct text whole = {0};
    pack(&whole, "some text that is packed", 24);
    for (size_t size = 2; size < whole.size; size++) {
        struct text cut = {0};
        text_append(&cut, whole.data, size);
        CHECK_INT("cut short", gunzip_and_check_message(&cut, 100, said), STATUS_BAD_INPUT);
        CHECK_INT("left as it was", (int64_t)cut.size, (int64_t)size);
        text_release(&cut);
    }
    struct text bad = {0};
    text_append(&bad, whole.data, whole.size);
    bad.data[whole.size - 6] ^= 1; /* the checksum */
    CHECK_INT("another text", gunzip_and_check_message(&bad, 100, said), STATUS_BAD_INPUT);
    text_release(&bad);
    text_append(&bad, whole.data, whole.size);
    text_puts(&bad, "behind it");
    CHECK_INT("what follows is none", gunzip_and_check_message(&bad, 100, said), STATUS_BAD_INPUT);
    text_release(&bad);
    text_release(&whole);
}

static const struct check_case cases[] = {
    {"members follow each other", concatenated_gzip_members_are_read},
    {"long texts come back", long_gzip_texts_are_unpacked},
    {"damage is said", damaged_gzip_is_reported},
};
CHECK_MAIN("gunzip", cases)
