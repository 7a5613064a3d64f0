#include "base/utf8.h"

size_t utf8_char_size(const char *text, size_t left)
{
    const unsigned char *c = (const unsigned char *)text;
    if (left == 0)
        return 0;
    if (c[0] < 0x80)
        return 1;
    size_t size = c[0] >= 0xf0 ? 4 : c[0] >= 0xe0 ? 3 : 2;
    if (c[0] < 0xc2 || c[0] > 0xf4 || size > left)
        return 0;
    for (size_t i = 1; i < size; i++)
        if ((c[i] & 0xc0) != 0x80) /* this also refuses a NUL, so nothing after it is read */
            return 0;
    bool overlong = (c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xf0 && c[1] < 0x90);
    bool surrogate = c[0] == 0xed && c[1] > 0x9f;
    bool too_large = c[0] == 0xf4 && c[1] > 0x8f;
    return overlong || surrogate || too_large ? 0 : size;
}

bool utf8_is_valid(const char *text)
{
    for (size_t size; *text != '\0'; text += size)
        if ((size = utf8_char_size(text, SIZE_MAX)) == 0)
            return false;
    return true;
}

size_t utf8_encode(uint32_t code, char out[4])
{
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        code = 0xfffd;
    const size_t size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    /* the marker bits of the first byte, by the number of bytes */
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = size; i-- > 1; code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(lead[size] | code);
    return size;
}

void utf8_append_repaired(struct text *out, const char *text)
{
    while (*text != '\0') {
        size_t size = utf8_char_size(text, SIZE_MAX);
        if (size > 0)
            text_append(out, text, size);
        else
            text_puts(out, "\xef\xbf\xbd");
        text += size > 0 ? size : 1;
    }
}
