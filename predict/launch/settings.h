/* predict/launch/settings.h: the settings of a launch file as a flat list, whatever its format.
 *
 * A setting is a name, the text of its value and the line on which it stands. Tables are flattened: "seq_len" in the
 * table [training] of a TOML file becomes "training.seq_len", and so do nested objects of JSON and YAML. Elements of
 * an array are separated by blanks. An argument of a program keeps its dashes: "--seq-length". A null value makes no
 * setting.
 *
 * A value that is known only when the script runs is open: it holds the text of the unknown part ($1, `hostname`)
 * between two marks. settings_find_open_part() recognises such a value. */
#ifndef PREDICT_LAUNCH_SETTINGS_H
#define PREDICT_LAUNCH_SETTINGS_H

#include "base/arena.h"
#include "base/diag.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>

enum setting_kind {
    SETTING_PROGRAM,  /* a setting of the program, or of the file */
    SETTING_LAUNCHER, /* an argument of torchrun, deepspeed, accelerate launch or srun */
};

/* The marks before and after a part of a value that only a run of the script knows. */
#define SETTING_OPEN_PART_BEGIN '\001'
#define SETTING_OPEN_PART_END '\002'

struct setting {
    const char *name;
    const char *value; /* NULL: an argument without one, a flag */
    struct loc place;
    enum setting_kind kind;
    bool is_list; /* the value is an array of TOML, JSON or YAML */
};

/* The most settings of a file. */
enum { SETTINGS_MAX = 1 << 14 };

/* The settings of one file. All-zero is empty. Texts live in the arena. */
struct settings {
    struct arena arena;
    struct setting *row; /* heap */
    size_t setting_count, capacity;
};

void settings_release(struct settings *settings);

/* Adds a setting and returns it; the pointer is valid until the next one is added. name and value are copied, at.name
 * is borrowed. value may be NULL. */
struct setting *settings_add(struct settings *settings, const char *name, const char *value,
                             struct loc at);

/* Returns the last setting of that name; NULL: there is none. */
const struct setting *settings_find(const struct settings *settings, const char *name);

/* Appends, as a decimal number, the whole number that `digits` write in a base (2, 8, 10 or 16); a '_' after a digit is
 * skipped. Returns false and appends nothing if there is another character or no digit, or if the number exceeds
 * INT64_MAX. */
bool settings_put_decimal(struct text *out, const char *digits, unsigned base);

/* Reports that a file has more than SETTINGS_MAX settings. */
enum status settings_refuse_too_many(struct loc at, struct diag *diag);

/* Returns the text of the first open part of a value ("$1"), without its marks, copied to the arena; NULL if there is
 * none. */
const char *settings_find_open_part(const char *value, struct arena *arena);

/* Returns the last part of a path of which an earlier part is open: "Qwen3-8B" of "$HOME/x/Qwen3-8B". Returns NULL if
 * the last part is open, too, or empty, or if no part is open. */
const char *settings_known_last_path_part(const char *value);

/* The readers of formats. Each adds the settings in text[0..size), up to its end or to the first fault, which is an
 * error. name: the text's name in messages; it is borrowed. */

/* Reads TOML 1.0 without dates, times and arrays of tables. */
enum status settings_read_toml(struct settings *settings, const char *name, const char *text,
                               size_t size, struct diag *diag);
enum status settings_read_json(struct settings *settings, const char *name, const char *text,
                               size_t size, struct diag *diag);
/* Reads one YAML document, which must be a mapping. Aliases and merge keys are refused. Whole numbers are read by YAML
 * 1.1, as in PyYAML: 020000 is octal, 0x2000 hexadecimal, 0b10 binary, and 8_192 is 8192. */
enum status settings_read_yaml(struct settings *settings, const char *name, const char *text,
                               size_t size, struct diag *diag);

#endif
