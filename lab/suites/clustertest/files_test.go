//go:build unix

package clustertest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/asynkron/protoactor-go/cluster"
)

// files is a provider based on a directory. Each member holds a lock on a file, which the kernel
// releases when its process dies, so a slow machine does not drop members. It obeys all rules
// except the one broken by its fault.
type files struct {
	dir, fault string
	stop       func()
	done       chan struct{}
	own        *os.File // locked; nil without the directory
	looked     time.Time
}

const (
	beat = 50 * time.Millisecond
	// pause is the time after which the fault "pause not noticed" considers all others dead.
	pause = time.Second
	// silentSuffix is that of a file with which the fault "silence not noticed" sees no changes.
	silentSuffix = ".silent"
)

var leaked []*os.File

func newFiles(dir, fault string) *files {
	return &files{dir: dir, fault: fault, done: make(chan struct{})}
}

func (f *files) StartClient(*cluster.Cluster) error { return errors.New("no clients") }

func (f *files) StartMember(c *cluster.Cluster) error {
	host, port, err := c.ActorSystem.GetHostPort()
	if err != nil {
		return err
	}
	self := &cluster.Member{Id: c.ActorSystem.ID, Host: host, Port: int32(port),
		Kinds: c.GetClusterKinds()}
	switch f.fault {
	case "id of the address":
		self.Id = fmt.Sprintf("%s-%d", c.Config.Name, port)
	case "no kinds":
		self.Kinds = nil
	case "errors logged":
		c.ActorSystem.Logger().Error("starting", slog.String("member", self.Id))
	case "open files":
		null, err := os.Open(os.DevNull)
		if err != nil {
			return err
		}
		leaked = append(leaked, null)
	case "goroutines":
		go func() { select {} }()
	}
	if err := f.announce(c.Config.Name, self); err != nil && f.fault != "starts without server" {
		return fmt.Errorf("directory %s: %w", f.dir, err)
	}
	stop := make(chan struct{})
	f.stop = sync.OnceFunc(func() { close(stop); <-f.done })
	go func() {
		defer close(f.done)
		for {
			f.round(c, self)
			select {
			case <-time.After(beat):
			case <-stop:
				return
			}
		}
	}()
	return nil
}

// announce creates the file of a member, which others see once it is locked and complete.
func (f *files) announce(name string, self *cluster.Member) error {
	data, err := json.Marshal(self)
	if err != nil {
		return err
	}
	path := filepath.Join(f.dir, name+"_"+self.Id)
	own, err := os.Create(path + ".new")
	if err != nil {
		return err
	}
	if free, err := lock(own, syscall.LOCK_EX); err != nil || !free {
		return errors.Join(err, own.Close(), errors.New("a new file is locked"))
	}
	if _, err := own.Write(data); err != nil {
		return errors.Join(err, own.Close())
	}
	f.own = own
	return os.Rename(path+".new", path)
}

// lock locks a file and reports whether it was free.
func lock(f *os.File, how int) (free bool, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return false, err
	}
	var got error
	err = raw.Control(func(fd uintptr) { got = syscall.Flock(int(fd), how|syscall.LOCK_NB) })
	if err == nil && !errors.Is(got, syscall.EWOULDBLOCK) {
		err = got
	}
	return got == nil, err
}

func (f *files) round(c *cluster.Cluster, self *cluster.Member) {
	alone := []*cluster.Member{self}
	before := f.looked
	f.looked = time.Now()
	if f.fault == "pause not noticed" && !before.IsZero() && f.looked.Sub(before) > pause {
		c.MemberList.UpdateClusterTopology(alone)
		return
	}
	if _, err := os.Stat(f.dir + silentSuffix); err == nil && f.fault == "silence not noticed" {
		return
	}
	all, err := f.list(c.Config.Name, self)
	switch {
	case err == nil:
		c.MemberList.UpdateClusterTopology(all)
	case f.fault == "empty without server", f.fault == "starts without server":
		c.MemberList.UpdateClusterTopology(alone)
	}
}

// list returns the members whose files are locked. It reads a single directory, even if the
// directory is moved.
func (f *files) list(name string, self *cluster.Member) (all []*cluster.Member, err error) {
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	pattern := name + "_*"
	if f.fault == "names by prefix" {
		pattern = name + "*"
	}
	paths, err := fs.Glob(root.FS(), pattern)
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		if strings.HasSuffix(path, ".new") {
			continue
		}
		m, err := f.read(root, path)
		if err != nil {
			return nil, err
		}
		if m == nil || m.Id == self.Id && f.fault == "not itself" || m.Id != self.Id &&
			f.fault == "not others" {
			continue
		}
		all = append(all, m)
	}
	return all, nil
}

// read returns nil for a member that has died or left.
func (f *files) read(root *os.Root, path string) (*cluster.Member, error) {
	file, err := root.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if dead, err := lock(file, syscall.LOCK_SH); err != nil || dead && f.fault != "dead stay" {
		return nil, err
	}
	data, err := io.ReadAll(file)
	if err != nil {
		return nil, err
	}
	var m cluster.Member
	return &m, json.Unmarshal(data, &m)
}

func (f *files) Shutdown(bool) error {
	if f.stop == nil || f.fault == "left stay" {
		return nil
	}
	f.stop()
	if f.own == nil {
		return nil
	}
	return errors.Join(os.Remove(strings.TrimSuffix(f.own.Name(), ".new")), f.own.Close())
}
