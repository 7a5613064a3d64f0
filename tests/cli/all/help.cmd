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
# a word that would change nothing is refused
for words in '--version x' '--help plan' '-h plan' 'help --man plan' 'help --completion bash plan' 'help --man --json' \
    'help --completion zsh --man' 'help --completion bash --json'; do
    longhaul $words 2>&1 || echo "  exit $?: $words"
done
# On a terminal of 60 columns help and messages are wrapped; into a pipe help is, at 80, and messages are not. A command
# stays one word.
tty() { script -qec "stty cols 60; $*" /dev/null < /dev/null | tr -d '\r'; }
if command -v script > /dev/null; then
    tty longhaul help schedule | awk 'length > 60 { print "wide: " $0 }'
    tty longhaul predict --model llama3-8b --cluster dgx-h100 --nodes 1 --seq 128K --pp 3 --pipeline 1f1b --hp 7 | awk 'length > 60 { wide++ } END { print wide + 0, "wide lines of messages" }'
fi
for command in $(longhaul help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do
    longhaul help $command | awk 'length > 80 && !/`/ { print FILENAME "wide: " $0 }'
done
longhaul help | awk 'length > 80'
