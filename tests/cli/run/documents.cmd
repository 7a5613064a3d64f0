# a schedule of packed documents: what it holds, that it computes what the reference does, and what it takes
file=$S/tests/schedule/golden/documents.ir
longhaul check $file | grep '^documents'
longhaul run $file --check --model longhaul-3m --set layers=1,hidden=16,heads=4,kv_heads=2,head_dim=4,ffn=16,vocab=32 | tail -n 1
longhaul predict $file --cluster dgx-h100 --nodes 1 --all | grep -o 'simulated *4 ranks in [0-9] classes'
# documents of half the length are computed otherwise
sed 's/lengths=40,20,4/lengths=20,20,20,4/' $file > $T/other.ir
longhaul run $T/other.ir --check --model longhaul-3m --set layers=1,hidden=16,heads=4,kv_heads=2,head_dim=4,ffn=16,vocab=32 | tail -n 1
# mistakes
sed 's/^documents of=1 .*//' $file > $T/gap.ir
longhaul check $T/gap.ir | grep '^documents\|^wrong'
sed 's/lengths=40,20,4/lengths=40,20/' $file > $T/short.ir
longhaul check $T/short.ir || echo exit code $?
