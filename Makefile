# Every target says what it is for: `make help`.
SHELL := /bin/bash
PROTOS := $(wildcard proto/*.proto)

.PHONY: proto
proto: ## regenerate proto/*.pb.go (needs protoc 3.21 and protoc-gen-go v1.36.12)
	protoc -I concord/v1=proto --go_out=. --go_opt=module=github.com/concord-go/concord \
		$(patsubst proto/%,concord/v1/%,$(PROTOS))
