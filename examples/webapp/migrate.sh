# Makes what the others need, once.
set -e
echo "migrating"
echo "hello from the migration" >index.html
