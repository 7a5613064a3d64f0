# The documents hold together: links and paths lead somewhere, options are those that the program has,
# tables of accuracy are those of accuracy_nightly.out, and nothing is blank twice.
D=$(echo $S/README.md $S/CONTRIBUTING.md $S/docs/*.md $S/docs/accuracy/*.md $S/docs/strategies/*.md)
cd $S
names() { sed "s#$S/##g"; }

# [text](target) and [text](target#anchor): the file, and a heading of it. Code between backticks is left out.
for f in $D; do
    sed '/^```/,/^```/d; s/`[^`]*`//g' $f | grep -o '](\([^)]*\))' | sed 's/^](//; s/)$//' | while read -r link; do
        to=${link%%#*}
        case $link in http*) continue ;; esac
        test -z "$to" || test -e "$(dirname $f)/$to" || echo "$f: no file $link"
        case $link in *#*)
            test -z "$to" && to=$f || to=$(dirname $f)/$to
            sed -n 's/^##* //p' $to | tr 'A-Z ' 'a-z-' | tr -cd 'a-z0-9\n_-' | grep -qx -e "${link#*#}" || echo "$f: no heading $link" ;;
        esac
    done
done | names
for f in docs/*.md; do grep -q "^|.*\`$f\`" README.md || echo "README.md lists no $f"; done
echo "links: looked at"

# `folder/file.ext`, where nothing stands for something else; 'docs/x.md, "Heading"' and '(`docs/x.md`, "Heading")'.
for f in $D $S/CHANGELOG.md; do
    grep -oE '`(docs|tests|cli|predict|examples|schedule|models|sim|exec|traces|base|bench|plots|packaging)/[A-Za-z0-9_./-]+\.[a-z]+`' $f | tr -d '`' |
        grep -vE '[A-Z]{4}|/$' | while read -r path; do test -e $path || echo "$f: no $path"; done
    tr '\n' ' ' < $f | grep -oE 'docs/[a-z/-]+\.md`?, "[^"]*"' | sed 's/`//; s/, "/ /; s/"$//' | while read -r to heading; do
        grep -qE "^##* .*$heading|^\*\*$heading" $to || echo "$f: no heading '$heading' in $to"
    done
done | names
# the picture of the program has paths without backticks
grep -oE '[a-z_]+/[a-z_/]+\.[ch]' docs/architecture.md | while read -r path; do test -e $path || echo "docs/architecture.md: no $path"; done
echo "paths: looked at"

# Every option on a line with a command is one of that command's.
all=$(longhaul help | sed -n 's/^  \([a-z]*\) .*/\1/p')
for c in $all; do longhaul help $c | sed -n 's/^  \(--[a-z-]*\).*/\1/p; s/^  \(-[a-z]\) .*/\1/p' | sort -u > $T/$c; done
# lines that go on are joined; what stands behind a pipe or a semicolon is another command
for f in $D; do
    sed -e ':a' -e '/\\$/N; s/\\\n */ /; ta' $f | grep -oE '(^|[ `(/])longhaul [a-z]+ [^`|;#]*' | sed 's/^[^l]*//' > $T/lines
    while read -r word c rest; do
        test -f $T/$c || continue
        for option in $rest; do
            case $option in --*) grep -qx -e "${option%%[=,.]*}" $T/$c || echo "$f: longhaul $c has no $option" ;; esac
        done
    done < $T/lines
done | names
echo "options: looked at"

# errors by table: a row of the document beside the line of accuracy_nightly.out
row() { # FILE, how the row begins, what the line of accuracy_nightly.out begins with
    wanted=$(sed -n "s#^  $(echo "$3" | sed 's/ /  */g')  *[0-9]*  *\([0-9.]* %\)  *\([-+][0-9.]* %\)\$#\1 | \2#p" tests/cli/validate/accuracy_nightly.out)
    grep -F -e "| $2" $1 | grep -qF -e "| ${wanted:-no such line} |" || echo "$1: '$2' is now $wanted"
}
row docs/accuracy/loongtrain.md "Table 2, tokens/s/GPU" "LoongTrain 2 tgs"
row docs/accuracy/loongtrain.md "Table 6, tokens/s/GPU" "LoongTrain 6 tgs"
row docs/accuracy/loongtrain.md "Table 4, attention_ms, one operator" "LoongTrain 4 attention_ms"
row docs/accuracy/loongtrain.md "Table 4, seqalltoall_ms (42)" "LoongTrain 4 seqalltoall_ms"
row docs/accuracy/loongtrain.md "Table 5, attention_ms, windows" "LoongTrain 5 attention_ms"
row docs/accuracy/loongtrain.md "Fig. 5d, forward" "LoongTrain fig5d comm_over_compute"
# and the rows of README.md: runs, mean of absolute errors and worst are those of a row of docs/accuracy.md or of a page below
same() { # how the row of README.md begins, how that of a document below docs/ begins, which of its cells, the document
    wanted=$(grep -F -e "| $2" docs/${4-accuracy.md} | head -1 | awk -F ' *[|] *' -v cells="$3" '{ n = split(cells, cell, " "); for (i = 1; i <= n; i++) printf "| %s ", $cell[i] }')
    test -n "$wanted" || echo "docs/${4-accuracy.md} has no row '$2'"
    grep -F -e "| $1" README.md | grep -qF -e "$wanted|" || echo "README.md: '$1' is now $wanted|"
}
same "training steps on H100" "device | h100 |" "4 5 7"
same "training steps on A100" "device | a100 |" "4 5 7"
same "training steps on B200" "device | b200 |" "4 5 7"
same "LoongTrain's Table 6" "Table 6, tokens/s/GPU" "3 4" accuracy/loongtrain.md
same "memory that PyTorch allocated" "memory | simumax-b200 |" "4 5 7"
echo "tables: looked at"

# what a document shows of a file is in the file
sed -n '/^Lines of .tests\/schedule\/example.ir/,/^```$/p' docs/ir.md | sed 's/  *#.*//' | grep -E '^[a-z]+ [a-z0-9._]* ?[a-z0-9]*[ =]' | while read -r line; do
    sed 's/  *#.*//' tests/schedule/example.ir | grep -qxF -e "$line" || echo "docs/ir.md: not in example.ir: $line"
done
sed -n '/^```json/,/^```/p' docs/clusters.md | sed '1,2d; $d' > $T/ours
sed -n '/^{/,$p' tests/data/clusters/ours.json | cmp - $T/ours
echo "files: looked at"

awk 'length > 120 { print "README.md:" FNR ": wider than 120 columns" }' README.md
# two blank lines, blanks at the end of a line, a heading without a blank line before it
for f in $D $S/CHANGELOG.md $S/STYLE.md; do
    awk -v f=$f '/^```/ { code = !code } { at = f ":" FNR ": " }
        FNR > 1 && $0 == "" && last == "" { print at "two blank lines" }
        /[ \t]$/ { print at "blanks at the end of a line" }
        !code && FNR > 1 && /^##* / && last != "" { print at "no blank line before a heading" }
        { last = $0 } END { if (last == "") print f ": ends with a blank line" }' $f
done | names
echo "lines: looked at"
