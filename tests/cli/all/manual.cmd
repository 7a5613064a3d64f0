# docs/longhaul.1 is what the tables say; `longhaul help --man > docs/longhaul.1` renews it
longhaul help --man | cmp -s - $S/docs/longhaul.1 ||
    echo "docs/longhaul.1 is not what the tables say: longhaul help --man > docs/longhaul.1 renews it"
