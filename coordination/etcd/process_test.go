//go:build stores

package etcd_test

const contenderVariable = "CONCORD_CONTEND"

func contender() int { return 1 }
