package main

import (
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	clientv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/concord-go/concord/coordination/etcd"
	"github.com/concord-go/concord/coordination/file"
	"github.com/concord-go/concord/coordination/kubernetes"
	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/examples/three"
)

// namespace is the namespace of the Lease objects on Kubernetes.
const namespace = "concord"

// openStore returns the lease store selected by -store, and the function that closes it.
func openStore(at string) (leases three.Leases, shut func() error, err error) {
	kind, where, _ := strings.Cut(at, ":")
	if where == "" && kind != "memory" {
		return nil, nil, fmt.Errorf(
			"-store is %q, it must be memory, file:DIRECTORY, etcd:ENDPOINTS or kubernetes:URL", at)
	}
	shut = func() error { return nil }
	switch kind {
	case "memory":
		return memory.New(), shut, nil
	case "file":
		s, err := file.Open(where)
		if err != nil {
			return nil, nil, err
		}
		return s, s.Close, nil
	case "etcd":
		return openEtcd(strings.Split(where, ","))
	case "kubernetes":
		client, err := clientv1.NewForConfig(&rest.Config{Host: where, QPS: -1})
		if err != nil {
			return nil, nil, err
		}
		leases, err = kubernetes.New(client, kubernetes.Config{Namespace: namespace,
			Exclusive: true})
		return leases, shut, err
	}
	return nil, nil, fmt.Errorf("-store is %q, and there is no store %q", at, kind)
}

func openEtcd(endpoints []string) (three.Leases, func() error, error) {
	client, err := etcd.Dial(clientv3.Config{Endpoints: endpoints, DialTimeout: 5 * time.Second,
		Logger: zap.NewNop()})
	if err != nil {
		return nil, nil, err
	}
	s, err := etcd.New(client, etcd.Config{Prefix: "concord/examples/bank/"})
	if err != nil {
		return nil, nil, err
	}
	return s, client.Close, nil
}
