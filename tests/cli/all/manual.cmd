# docs/longhaul.1 is what the tables say; `longhaul help --man > docs/longhaul.1` renews it
longhaul help --man | cmp - $S/docs/longhaul.1
