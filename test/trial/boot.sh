#!/bin/sh
# boot - a machine in namespaces of its own: systemd as its first process, over a root whose changes go with it
#
# $1 the root below; $2 an empty folder. Called in new mount, pid, uts, ipc, cgroup and net namespaces.
set -eu
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs "$2"
mkdir "$2/upper" "$2/work" "$2/root"
mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" "$2/root"
root=$2/root
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
mkdir "$root/dev/pts" "$root/dev/shm"
for name in null zero full random urandom tty; do
  touch "$root/dev/$name"
  mount --bind "/dev/$name" "$root/dev/$name"
done
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
touch "$root/dev/console"
mount -t tmpfs tmpfs "$root/sys/fs/cgroup"
mount -t cgroup2 none "$root/sys/fs/cgroup"
rm -f "$root/etc/resolv.conf"
# An installation on the machine below is not there.
rm -rf "$root/var/lib/sendwright" "$root/var/backups/sendwright" "$root/etc/sendwright" "$root"/opt/sendwright*
cp /etc/resolv.conf "$root/etc/resolv.conf"
hostname trial
ip link set lo up
cd "$root"
mkdir -p .old
pivot_root . .old
umount -l /.old
# What the machine below has enabled is not wanted here: no target above the basic one.
exec /usr/bin/env -i container=trial PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=basic.target
