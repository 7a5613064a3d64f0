# The indented blocks of a document, each into a file <to>.NN: its commands, without prompts and what is printed below them.
/^    / {
    if (!on) { on = 1; count++; prompts = 0 }
    line = substr($0, 5)
    name = sprintf("%s.%02d", to, count)
    if (line ~ /^\$ /) { prompts = 1; sub(/^\$ /, "", line); more = 1 }
    if (!prompts || more) print line > name
    if (prompts) more = more && line ~ /\\$/ # what a command prints may end so too
    next
}
/^$/ && on && prompts { next } # what a command prints has empty lines
{ on = 0 }
