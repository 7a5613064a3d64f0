/* Reads the here-documents of a script: one that is JSON with DeepSpeed's keys is its configuration. */
#include "predict/launch/formats.h"
#include "predict/launch/launch_reader.h"

#include <string.h>

/* Appends the open part (predict/launch/settings.h) with which `text` begins, with its two marks, as characters within
 * a JSON string. Returns the text after the part. */
static const char *put_open_part_as_json_text(struct text *out, const char *text)
{
    text_printf(out, "\\u%04x", SETTING_OPEN_PART_BEGIN);
    for (text++; *text != '\0' && *text != SETTING_OPEN_PART_END; text++) {
        if (*text == '"' || *text == '\\')
            text_putc(out, '\\');
        text_putc(out, (unsigned char)*text < ' ' ? ' ' : *text);
    }
    text_printf(out, "\\u%04x", SETTING_OPEN_PART_END);
    return text + (*text != '\0');
}

/* Makes a JSON string of a word that has an open part and no quotation marks, such as 1$A. The part of the word before
 * `text` has been appended already: puts a quotation mark before that part, and appends the rest of the word and the
 * closing quotation mark. Returns the text after the word. */
static const char *put_open_word(struct text *out, const char *text)
{
    size_t word = out->size;
    while (word > 0 && strchr(" \t\r\n:,[{", out->data[word - 1]) == NULL)
        word--;
    text_putc(out, '"');
    memmove(out->data + word + 1, out->data + word, out->size - 1 - word);
    out->data[word] = '"';
    while (*text != '\0' && strchr(" \t\r\n,]}", *text) == NULL)
        if (*text == SETTING_OPEN_PART_BEGIN)
            text = put_open_part_as_json_text(out, text);
        else
            text_putc(out, *text++);
    text_putc(out, '"');
    return text;
}

/* Appends JSON some of whose values have open parts ("stage": $1), which is no JSON, as JSON in which these values are
 * strings. The strings hold the open parts with their marks. */
static void put_json_with_open_parts_as_text(struct text *out, const char *text)
{
    bool string = false;
    text_puts(out, "");
    while (*text != '\0') {
        if (*text == SETTING_OPEN_PART_BEGIN) {
            text = string ? put_open_part_as_json_text(out, text) : put_open_word(out, text);
            continue;
        }
        if (*text == '"')
            string = !string;
        if (string && *text == '\\' && text[1] != '\0')
            text_putc(out, *text++);
        text_putc(out, *text++);
    }
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

/* Whether the command that starts the training reads a here-document as its DeepSpeed configuration. */
enum document_naming {
    NAMED_OTHER, /* no: it names another file, or is Megatron-LM's, which reads no such configuration */
    NAMED_NONE, /* maybe: it names no file, or the document goes to no known file */
    NAMED_THIS  /* yes: it names the file to which the document goes */
};

static enum document_naming naming_of_document(const struct launch *launch,
                                               const struct shell_file_from_here_document *document)
{
    if (!launch_has_field(launch, LAUNCH_DEEPSPEED_CONFIG) || document->file == NULL)
        return launch->has_read_framework_file[LAUNCH_MEGATRON] ? NAMED_OTHER : NAMED_NONE;
    const char *path = launch_field_text(launch, LAUNCH_DEEPSPEED_CONFIG);
    return strcmp(base_name(path), base_name(document->file)) == 0 ? NAMED_THIS : NAMED_OTHER;
}

/* Reads a document that begins as JSON does, unless naming_of_document() says NAMED_OTHER. Sets *taken to whether it is
 * the DeepSpeed configuration; then fields are set from it, and a wrong value is an error. Faulty JSON, or JSON without
 * a key of DeepSpeed, is an error only if the command names the document's file. */
static enum status read_document(struct launch *launch, const char *name,
                                 const struct shell_file_from_here_document *document, bool *taken,
                                 struct diag *diag)
{
    enum document_naming named = naming_of_document(launch, document);
    struct settings settings = {0};
    struct text lines = {0}; /* so that messages name the lines of the script */
    *taken = false;
    if (named == NAMED_OTHER)
        return STATUS_OK;
    for (uint32_t line = 1; line < document->line; line++)
        text_putc(&lines, '\n');
    put_json_with_open_parts_as_text(&lines, document->text);
    enum status status = settings_read_json(&settings, name, lines.data, lines.size,
                                            named == NAMED_THIS ? diag : NULL);
    const struct launch_format *format = launch_format_of_settings(launch, &settings);
    if (status == STATUS_OK && format != NULL && format->framework == LAUNCH_DEEPSPEED_JSON) {
        *taken = true;
        status = launch_set_fields(launch, LAUNCH_DEEPSPEED_JSON, &settings, diag);
    } else if (status == STATUS_OK && named == NAMED_THIS) {
        status =
            diag_error(diag, (struct loc){.name = name, .line = document->line}, STATUS_BAD_INPUT,
                       "this JSON has no key of DeepSpeed's configuration, as which the "
                       "command names it");
    } else if (named != NAMED_THIS) {
        status = STATUS_OK;
    }
    settings_release(&settings);
    text_release(&lines);
    return status;
}

enum status launch_read_here_documents(struct launch *launch, const char *name,
                                       const struct shell_script *script, struct diag *diag)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < script->document_count && status == STATUS_OK; i++) {
        const struct shell_file_from_here_document *document = &script->document[i];
        bool taken = false;
        if (document->text[strspn(document->text, " \t\r\n")] == '{')
            status = read_document(launch, name, document, &taken, diag);
        if (status == STATUS_OK && !taken)
            launch_add_remark_printf(launch, REMARK_IGNORED, "here-document",
                                     (struct loc){.name = name, .line = document->line}, "%s", "");
    }
    return status;
}
