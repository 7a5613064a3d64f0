longhaul
longhaul help
longhaul --help
for command in predict schedule check validate list help; do
    longhaul help $command
done
longhaul list --help | cmp - /dev/stdin <<END
$(longhaul help list)
END
longhaul --version | sed 's/ [0-9].*/ VERSION/'
