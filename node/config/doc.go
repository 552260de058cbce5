// Package config reads one file, concord.yaml, that configures how a process takes part in its
// cluster: the member, its leases, replicators, singletons and sharded entities.
//
//	node:
//	  cluster: shop
//	  host: ${POD_IP:-127.0.0.1}
//	  port: 7000
//	  min-members: 2
//	  provider: {class: automanaged, hosts: [10.0.0.1:6330, 10.0.0.2:6330]}
//	  lease: shop
//	leases:
//	  defaults: {heartbeat-timeout: 30s}
//	  shop: {lease-class: etcd, store: {endpoints: [10.0.0.9:2379]}}
//	replicators:
//	  carts: {min-members: 2, durable: ["*"], store: {class: bbolt, directory: /var/lib/shop}}
//	singletons:
//	  billing: {hand-over: 5s}
//	sharding:
//	  account: {shards: 512}
//
// The program lists the kinds of providers and stores that it supports, so that it links only the
// clients it needs:
//
//	file, err := config.Load("concord.yaml", config.Kinds{
//		Providers: map[string]config.Provider{"automanaged": automanaged.Configured},
//		Leases:    map[string]leaseconfig.Opener{"etcd": etcd.Opener},
//		Disks:     map[string]config.Disk{"bbolt": bbolt.Opener},
//	})
//	err = node.Run(ctx, file.Node, func(n *node.Node) error {
//		billing, err := file.Singleton("billing")
//		…
//	})
//
// # What is checked
//
// The whole file is checked before anything runs, and all problems are reported at once, with line
// and key. An unknown or duplicate key is an error; for an unknown key, the error names the nearest
// known one. Each value is checked against its range. Reading opens nothing and contacts no server.
// An error quotes the value in question, so keep secrets in variables or files of their own.
//
// # Variables
//
// ${NAME} in a value is replaced by the environment variable NAME. ${NAME:-default} gives a default
// for a variable that is unset or empty; $$ stands for $. An unset variable without a default is an
// error. The contents of a variable are read as if they stood in the file, but are always a single
// value: they cannot become a list or other keys. The environment changes settings in no other way.
//
// # Supported YAML
//
// A file is one document of at most 1 MiB with keys, values and lists. Anchors, aliases, merges
// (<<) and tags are errors.
//
// docs/configuration.md lists all keys.
package config
