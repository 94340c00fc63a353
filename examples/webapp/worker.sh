# Works until it is told to stop, and tidies up then.
trap 'echo "stopping"; exit 0' TERM
echo "working"
while :; do sleep 0.1; done
