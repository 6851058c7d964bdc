#!/usr/bin/env bash
# Moves containerd's and the kubelet's data from the root volume, whose size HyperPod determines (about 100 GB), to the additional volume.
#
# Symbolic links, and no change of containerd's configuration: its place and format differ between releases of the AMI, and a node
# may write it after this script has run. A link also fails in the right way: should the volume be missing after a reboot, containerd does
# not start on the root volume but is restarted until the volume is there. Running it again changes nothing.
#
# Environment, for tests alone: LIFECYCLE_ROOT stands before every path, LIFECYCLE_VOLUME_WAIT is how long the volume may take (seconds).
set -euo pipefail

readonly root="${LIFECYCLE_ROOT:-}"
readonly volume="$root/opt/sagemaker"
readonly wait_seconds="${LIFECYCLE_VOLUME_WAIT:-60}"
readonly containerd_default="/var/lib/containerd"
readonly kubelet_data="/var/lib/kubelet"

say() {
  printf '%s on_create_main.sh: %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$*"
}

# The volume is attached while the node starts. Status 1 where it does not come.
wait_for_volume() {
  local waited=0
  until mountpoint -q "$volume"; do
    ((waited >= wait_seconds)) && return 1
    sleep 1
    waited=$((waited + 1))
  done
}

# Where containerd keeps its data: what its configuration says, if it is there already, else its default.
containerd_data() {
  local configuration="$root/etc/containerd/config.toml" configured=""
  if [[ -f "$configuration" ]]; then
    configured="$(sed -n 's/^[[:space:]]*root[[:space:]]*=[[:space:]]*["'\'']\([^"'\'']*\)["'\''].*$/\1/p' "$configuration" | head -n 1)"
  fi
  printf '%s\n' "${configured:-$containerd_default}"
}

# relocate DIRECTORY TARGET: moves what a directory holds and leaves a link. Each step can be the last one of an interrupted run.
relocate() {
  local directory="$1" target="$2" old="$1.before-relocation"
  if [[ -L "$directory" ]]; then
    if [[ "$(readlink "$directory")" != "$target" ]]; then
      say "$directory links to $(readlink "$directory") and not to $target" >&2
      return 1
    fi
    say "$directory is on the volume already"
  else
    mkdir -p "$target" "$(dirname "$directory")"
    if [[ -d "$directory" ]]; then
      # The AMI brings images along, the pause image among them, and a kubelet's certificates may be there.
      cp -a "$directory/." "$target/"
      mv "$directory" "$old"
    fi
    ln -s "$target" "$directory"
    say "$directory is now $target"
  fi
  rm -rf --one-file-system "$old"
}

running=()

stop() {
  if systemctl is-active --quiet "$1"; then
    say "stopping $1"
    systemctl stop "$1"
    running=("$1" ${running[@]+"${running[@]}"})
  fi
}

if ! wait_for_volume; then
  say "warning: nothing is mounted at $volume after $wait_seconds s: images and pods stay on the root volume"
  exit 0
fi

containerd="$(containerd_data)"
stop kubelet
stop containerd
if [[ "$containerd" == "$containerd_default" ]]; then
  relocate "$root$containerd_default" "$volume/containerd"
else
  say "containerd keeps its data at $containerd: left there"
fi
relocate "$root$kubelet_data" "$volume/kubelet"
for unit in ${running[@]+"${running[@]}"}; do
  say "starting $unit"
  systemctl start "$unit"
done
