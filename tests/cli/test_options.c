/* tests/cli/test_options.c: options of a command line are split and read by their kind, wrong ones get a message, and
 * help is printed from the same rows. */
#include "cli/common/options.h"

#include "base/arena.h"
#include "tests/check.h"

#include <string.h>

static const char *const colours[] = {"red", "green"};
static const struct option first_rows[] = {
    {.name = "name",
     .kind = OPTION_TEXT,
     .value_name = "NAME",
     .default_text = "none",
     .help = "a name"},
    {.name = "size",
     .kind = OPTION_INTEGER,
     .value_name = "N",
     .low = 2,
     .high = 8,
     .help = "a size"},
    {.name = "seq",
     .kind = OPTION_TOKENS,
     .value_name = "TOKENS",
     .default_text = "1K",
     .help = "tokens"},
};
static const struct option second_rows[] = {
    {.name = "total", .kind = OPTION_TRAINING_TOKENS, .value_name = "N", .help = "a total"},
    {.name = "price", .kind = OPTION_POSITIVE_NUMBER, .value_name = "X", .help = "a price"},
    {.name = "colour", .kind = OPTION_CHOICE, .names = colours, .name_count = 2, .help = "one"},
    {.name = "o", .kind = OPTION_TEXT, .value_name = "FILE", .help = "a file"},
    {.name = "vary", .kind = OPTION_REPEATABLE, .value_name = "X", .help = "many"},
    {.name = "loud", .kind = OPTION_FLAG, .help = "a flag"},
};
static const struct option_set first = {"first", first_rows, ARRAY_LEN(first_rows)};
static const struct option_set second = {"second", second_rows, ARRAY_LEN(second_rows)};
static const struct option_set *const sets[] = {&first, &second, NULL};

enum { WORDS_MAX = 8 };

/* Parses up to WORDS_MAX words; NULL ends the list. */
static enum status parse(struct options *options, const char *const *words, struct diag *diag)
{
    char text[WORDS_MAX][64], *argv[WORDS_MAX];
    static char kept[WORDS_MAX][64]; /* values of options point into argv */
    int argc = 0;
    while (argc < WORDS_MAX && words[argc] != NULL) {
        strncpy(text[argc], words[argc], sizeof text[0] - 1);
        text[argc][sizeof text[0] - 1] = '\0';
        memcpy(kept[argc], text[argc], sizeof kept[0]);
        argv[argc] = kept[argc];
        argc++;
    }
    return options_parse(options, sets, argc, argv, diag);
}

static void values_are_read_in_both_forms(void)
{
    static const char *const words[] = {"--name=x=y", "--size", "8",   "-o",
                                        "-",          "--loud", "arg", NULL};
    struct options options = {0};
    struct diag diag = {0};
    CHECK_INT("parsed", parse(&options, words, &diag), STATUS_OK);
    CHECK_TEXT("name", options_text(&options, "name"), "x=y");
    CHECK_INT("size", options_whole_number(&options, "size"), 8);
    CHECK_TEXT("o", options_text(&options, "o"), "-");
    CHECK("loud", is_option_given(&options, "loud"));
    CHECK_INT("arguments", (int64_t)options.argument_count, 1);
    CHECK_TEXT("argument", options.positional_arguments[0], "arg");
    options_release(&options);
    diag_release(&diag);
}

static void lists_keep_their_order(void)
{
    static const char *const words[] = {"--vary", "b=1", "--vary=a", NULL};
    struct options options = {0};
    struct diag diag = {0};
    size_t count;
    CHECK_INT("parsed", parse(&options, words, &diag), STATUS_OK);
    const char *const *list = options_list(&options, "vary", &count);
    CHECK_INT("count", (int64_t)count, 2);
    CHECK_TEXT("first", list[0], "b=1");
    CHECK_TEXT("second", list[1], "a");
    options_release(&options);
    diag_release(&diag);
}

static void option_fallbacks_count_as_not_given(void)
{
    static const char *const words[] = {NULL};
    struct options options = {0};
    struct diag diag = {0};
    CHECK_INT("parsed", parse(&options, words, &diag), STATUS_OK);
    CHECK_TEXT("name", options_text(&options, "name"), "none");
    CHECK("name is not given", !is_option_given(&options, "name"));
    CHECK_INT("seq", options_whole_number(&options, "seq"), 1024);
    CHECK_INT("size", options_whole_number(&options, "size"), 0);
    CHECK_INT("colour", options_index_of_choice(&options, "colour"), -1);
    CHECK("o", options_text(&options, "o") == NULL);
    CHECK_CLOSE("price", options_number(&options, "price"), 0, 0);
    options_release(&options);
    diag_release(&diag);
}

static void option_values_are_read_by_kind(void)
{
    static const char *const words[] = {"--total", "15T",   "--price=2.5", "--colour",
                                        "green",   "--seq", "1M",          NULL};
    struct options options = {0};
    struct diag diag = {0};
    CHECK_INT("parsed", parse(&options, words, &diag), STATUS_OK);
    CHECK_CLOSE("total", options_number(&options, "total"), 15e12, 0);
    CHECK_CLOSE("price", options_number(&options, "price"), 2.5, 0);
    CHECK_INT("colour", options_index_of_choice(&options, "colour"), 1);
    CHECK_INT("seq", options_whole_number(&options, "seq"), 1 << 20);
    options_release(&options);
    diag_release(&diag);
}

static void two_dashes_end_the_options(void)
{
    static const char *const words[] = {"--", "--name", "-", NULL};
    struct options options = {0};
    struct diag diag = {0};
    CHECK_INT("parsed", parse(&options, words, &diag), STATUS_OK);
    CHECK_INT("arguments", (int64_t)options.argument_count, 2);
    CHECK_TEXT("argument", options.positional_arguments[0], "--name");
    options_release(&options);
    diag_release(&diag);
}

static const struct {
    const char *label, *words[4], *message;
} wrong[] = {
    {"unknown",
     {"--nmae", "x"},
     "--nmae: error: there is no such option; did you mean '--name'?\n"},
    {"nothing like it",
     {"--zzzzzz"},
     "--zzzzzz: error: there is no such option; --help lists them all\n"},
    {"one dash for a long name",
     {"-name"},
     "-name: error: there is no such option; did you mean '--name'?\n"},
    {"two dashes for a letter",
     {"--o", "x"},
     "--o: error: there is no such option; did you mean '-o'?\n"},
    {"twice", {"--name", "a", "--name=b"}, "--name: error: given twice\n"},
    {"no value", {"--name"}, "--name: error: its value is missing\n"},
    {"empty", {"--name="}, "--name: error: the value is empty\n"},
    {"flag with a value", {"--loud=yes"}, "--loud: error: takes no value, not 'yes'\n"},
    {"low", {"--size", "1"}, "--size: error: '1' is not a whole number from 2 to 8\n"},
    {"high", {"--size", "9"}, "--size: error: '9' is not a whole number from 2 to 8\n"},
    {"overflow",
     {"--size", "99999999999999999999"},
     "--size: error: '99999999999999999999' is not a whole number from 2 to 8\n"},
    {"fraction", {"--size", "2.5"}, "--size: error: '2.5' is not a whole number from 2 to 8\n"},
    {"choice", {"--colour", "blue"}, "--colour: error: 'blue' is not one of red, green\n"},
    {"price", {"--price", "inf"}, "--price: error: 'inf' is not a number above 0\n"},
};

static void each_wrong_option_has_its_message(void)
{
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct options options = {0};
        struct diag diag = {0};
        CHECK_INT(wrong[i].label, parse(&options, wrong[i].words, &diag), STATUS_BAD_INPUT);
        CHECK_TEXT(wrong[i].label, diag.text, wrong[i].message);
        options_release(&options);
        diag_release(&diag);
    }
}

static void help_comes_from_the_same_rows(void)
{
    struct text out = {0};
    options_print_help(&out, sets, NULL);
    CHECK_TEXT("help", out.data,
               "\nfirst:\n"
               "  --name NAME             a name [none]\n"
               "  --size N                a size\n"
               "  --seq TOKENS            tokens [1K]\n"
               "\nsecond:\n"
               "  --total N               a total\n"
               "  --price X               a price\n"
               "  --colour red|green      one\n"
               "  -o FILE                 a file\n"
               "  --vary X                many\n"
               "  --loud                  a flag\n");
    text_release(&out);
}

static void alternative_options_are_exclusive(void)
{
    static const char *const words[] = {"--size", "3", "--colour", "red", NULL};
    struct options options = {0};
    struct diag diag = {0};
    CHECK_INT("parsed", parse(&options, words, &diag), STATUS_OK);
    CHECK_INT("excluded", options_refuse_both(&options, "size", "colour", &diag), STATUS_BAD_INPUT);
    CHECK_TEXT("message", diag.text,
               "--size: error: cannot be given together with --colour: leave one of the two out\n");
    CHECK_INT("one alone", options_refuse_both(&options, "size", "o", NULL), STATUS_OK);
    options_release(&options);
    diag_release(&diag);
}

/* The words of each text, each in brackets; NULL: a quote is not closed, or nothing follows the
 * last backslash. */
static const struct {
    const char *text, *words;
} splits[] = {
    {"", ""},
    {"  --seq\t2K \n", "[--seq][2K]"},
    {"--cluster '2x8xdgx:a=100 Gb/s,b=1'", "[--cluster][2x8xdgx:a=100 Gb/s,b=1]"},
    {"\"a 'b\" 'c \"d'", "[a 'b][c \"d]"},
    {"a'b c'\"d e\"f", "[ab cd ef]"},
    {"'' \"\"", "[][]"},
    {"a\\ b 'c'\\''d'", "[a b][c'd]"},
    {"\"a\\\"b\\n\"", "[a\"b\\n]"},
    {"$HOME *.json", "[$HOME][*.json]"},
    {"a 'b", NULL},
    {"a \"b\\\"", NULL},
    {"a b\\", NULL},
};

static void words_are_split_as_a_shell_splits_them(void)
{
    for (size_t i = 0; i < ARRAY_LEN(splits); i++) {
        struct arena arena = {0};
        struct diag diag = {0};
        struct text got = {0};
        char **word;
        int count;
        const struct loc at = {.name = "args"};
        enum status status = options_split_words(&word, &count, &arena, splits[i].text, at, &diag);
        CHECK_INT(splits[i].text, status, splits[i].words ? STATUS_OK : STATUS_BAD_INPUT);
        text_puts(&got, "");
        for (int k = 0; k < count; k++)
            text_printf(&got, "[%s]", word[k]);
        if (splits[i].words != NULL)
            CHECK_TEXT(splits[i].text, got.data, splits[i].words);
        else
            CHECK(
                "says so",
                strstr(
                    diag.text,
                    "args: error: a quote is not closed, or nothing follows the last backslash: "));
        text_release(&got);
        diag_release(&diag);
        arena_release(&arena);
    }
}

static void quoted_shell_words_are_read_back(void)
{
    static const char *const words[] = {"--set", "", "it's", "a b", "\"$x\"", "\\", "'", "{1,2}"};
    struct arena arena = {0};
    struct text line = {0};
    char **word;
    int count;
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        options_put_quoted_word(&line, words[i]);
    CHECK_INT("split", options_split_words(&word, &count, &arena, line.data, (struct loc){0}, NULL),
              STATUS_OK);
    if (CHECK_INT("words", count, (int)ARRAY_LEN(words)))
        for (size_t i = 0; i < ARRAY_LEN(words); i++)
            CHECK_TEXT("word", word[i], words[i]);
    text_release(&line);
    arena_release(&arena);
}

static void values_are_found_in_a_command(void)
{
    static const struct {
        const char *command, *value; /* NULL: none */
    } rows[] = {
        {"longhaul sweep --model=gpt2 --cluster=ideal", "gpt2"},
        {"longhaul predict --cluster ideal --model gpt2", "gpt2"},
        {"longhaul sweep '--model=it'\\''s.json' --cluster=ideal", "it's.json"},
        {"longhaul predict --model 'it'\\''s.json' --cluster ideal", "it's.json"},
        {"longhaul predict --model 'a b.json'", "a b.json"},
        {"longhaul predict --model-x gpt2 --cluster ideal", NULL},
        {"longhaul predict --title 'no --model gpt2 here'", NULL},
        {"longhaul predict --model", NULL},
        {"longhaul predict 'open", NULL},
        {NULL, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct text value = {0};
        const char *label = rows[i].command != NULL ? rows[i].command : "no command";
        bool found = options_value_in_written_command(rows[i].command, "model", &value);
        CHECK_INT(label, found, rows[i].value != NULL);
        CHECK_TEXT(label, found ? value.data : NULL, rows[i].value);
        text_release(&value);
    }
}

static const struct check_case cases[] = {
    {"values are found in a command", values_are_found_in_a_command},
    {"words are split as a shell splits them", words_are_split_as_a_shell_splits_them},
    {"what is put as a word is read back", quoted_shell_words_are_read_back},
    {"values are read in both forms", values_are_read_in_both_forms},
    {"fallbacks stand in and count as not given", option_fallbacks_count_as_not_given},
    {"each kind has its values", option_values_are_read_by_kind},
    {"lists keep their order", lists_keep_their_order},
    {"two dashes end the options", two_dashes_end_the_options},
    {"wrong options are told apart", each_wrong_option_has_its_message},
    {"help comes from the same rows", help_comes_from_the_same_rows},
    {"two names of one thing exclude each other", alternative_options_are_exclusive},
};
CHECK_MAIN("options", cases)
