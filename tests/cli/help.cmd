longhaul
longhaul help
longhaul --help
for command in predict schedule check validate list help; do
    longhaul help $command
done
longhaul list --help > $T/option
longhaul help list > $T/command
cmp $T/option $T/command
longhaul --version | sed 's/ [0-9].*/ VERSION/'
