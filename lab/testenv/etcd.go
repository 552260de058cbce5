package main

import (
	"context"
	"net/http"
	"path/filepath"
)

// startEtcd starts one member, and exports the path of the programs, since tests start their own
// clusters.
func startEtcd(ctx context.Context, e *environment) error {
	program, err := e.build(ctx, "etcd", "go.etcd.io/etcd/server/v3", "-ldflags=-s -w")
	if err != nil {
		return err
	}
	ctl, err := e.build(ctx, "etcdctl", "go.etcd.io/etcd/etcdctl/v3", "-ldflags=-s -w")
	if err != nil {
		return err
	}
	address, err := e.startMember(ctx, program)
	if err != nil {
		return err
	}
	e.set("CONCORD_ETCD", address)
	e.set("CONCORD_ETCD_BIN", program)
	e.set("CONCORD_ETCDCTL", ctl)
	return nil
}

func (e *environment) startMember(ctx context.Context, program string) (address string, err error) {
	port, err := e.free()
	if err != nil {
		return "", err
	}
	peer, err := e.free()
	if err != nil {
		return "", err
	}
	address = "127.0.0.1:" + port
	client, peers := "http://"+address, "http://127.0.0.1:"+peer
	log, _, err := e.spawn("etcd-"+port, program, "--name", "m0", "--data-dir",
		filepath.Join(e.temp, "etcd-"+port), "--listen-client-urls", client,
		"--advertise-client-urls", client, "--listen-peer-urls", peers,
		"--initial-advertise-peer-urls", peers, "--initial-cluster", "m0="+peers, "--log-level",
		"warn")
	if err != nil {
		return "", err
	}
	return address, ready(ctx, http.DefaultClient, log, http.StatusOK,
		func(ctx context.Context) (*http.Request, error) {
			return http.NewRequestWithContext(ctx, http.MethodGet, client+"/health", http.NoBody)
		})
}
