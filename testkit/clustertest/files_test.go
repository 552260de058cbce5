package clustertest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/cluster"
)

// files is a provider with a directory: each member keeps a file, whose time says that it lives. It obeys
// all rules, but for the fault that it was given.
type files struct {
	dir, fault string
	stop       func()
	done       chan struct{}
	path       string
	until      time.Time // nobody is dropped, since the directory was away
	looked     time.Time
	last       []*cluster.Member
}

const (
	beat = 50 * time.Millisecond
	ttl  = 1500 * time.Millisecond
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
	self := &cluster.Member{Id: c.ActorSystem.ID, Host: host, Port: int32(port), Kinds: c.GetClusterKinds()}
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
	f.path = filepath.Join(f.dir, c.Config.Name+"_"+self.Id)
	if err := f.write(self); err != nil && f.fault != "starts without server" {
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

func (f *files) write(self *cluster.Member) error {
	data, err := json.Marshal(self)
	if err != nil {
		return err
	}
	if err := os.WriteFile(f.path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(f.path+".new", f.path)
}

func (f *files) round(c *cluster.Cluster, self *cluster.Member) {
	if err := f.write(self); err != nil {
		f.until = time.Now().Add(ttl)
		if f.fault == "empty without server" || f.fault == "starts without server" {
			c.MemberList.UpdateClusterTopology([]*cluster.Member{self})
		}
		return
	}
	if now := time.Now(); now.Sub(f.looked) > ttl/2 && f.fault != "pause not noticed" {
		f.until = now.Add(ttl)
	}
	f.looked = time.Now()
	if len(f.last) > 0 && time.Now().Before(f.until) {
		return
	}
	pattern := c.Config.Name + "_*"
	if f.fault == "names by prefix" {
		pattern = c.Config.Name + "*"
	}
	names, _ := filepath.Glob(filepath.Join(f.dir, pattern))
	var all []*cluster.Member
	for _, name := range names {
		var m cluster.Member
		info, err := os.Stat(name)
		if err != nil || strings.HasSuffix(name, ".new") || time.Since(info.ModTime()) > ttl && f.fault != "dead stay" {
			continue
		}
		if data, err := os.ReadFile(name); err != nil || json.Unmarshal(data, &m) != nil {
			continue
		}
		if m.Id == self.Id && f.fault == "not itself" || m.Id != self.Id && f.fault == "not others" {
			continue
		}
		all = append(all, &m)
	}
	if _, err := os.Stat(f.dir); err != nil { // taken away meanwhile: the list may lack members
		f.until = time.Now().Add(ttl)
		return
	}
	f.last = all
	c.MemberList.UpdateClusterTopology(all)
}

func (f *files) Shutdown(bool) error {
	if f.stop == nil || f.fault == "left stay" {
		return nil
	}
	f.stop()
	return os.Remove(f.path)
}
