package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
)

const azuriteVersion = "3.35.0"

// startAzure starts Azurite, Microsoft's own emulator of Azure Storage, from npm.
func startAzure(ctx context.Context, e *environment) error {
	program, err := e.installAzurite(ctx)
	if err != nil {
		return err
	}
	port, err := e.free()
	if err != nil {
		return err
	}
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	key := base64.StdEncoding.EncodeToString(secret)
	// Use env, since spawn sets no environment for servers.
	log, _, err := e.spawn("azurite", "env", "AZURITE_ACCOUNTS=concord:"+key, program, "--blobPort",
		port, "--location", filepath.Join(e.temp, "azurite"), "--skipApiVersionCheck", "--silent")
	if err != nil {
		return err
	}
	address := "http://127.0.0.1:" + port + "/concord"
	if err := ready(ctx, http.DefaultClient, log, http.StatusBadRequest,
		func(ctx context.Context) (*http.Request, error) {
			// The server rejects the request, which shows that it is running.
			return http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
		}); err != nil {
		return err
	}
	e.set("CONCORD_AZURE", fmt.Sprintf(
		"DefaultEndpointsProtocol=http;AccountName=concord;AccountKey=%s;BlobEndpoint=%s;", key,
		address))
	return nil
}

func (e *environment) installAzurite(ctx context.Context) (string, error) {
	dir := filepath.Join(e.bin, "azurite-"+azuriteVersion)
	program := filepath.Join(dir, "node_modules", ".bin", "azurite-blob")
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	npm, err := e.findNpm(ctx)
	if err != nil {
		return "", err
	}
	e.say("testenv: installing azurite (a minute, once)\n")
	return program, again(ctx, func() error {
		out, err := exec.CommandContext(ctx, npm, "install", "--no-audit", "--no-fund", "--prefix",
			dir, "azurite@"+azuriteVersion).CombinedOutput()
		if err != nil {
			return fmt.Errorf("npm install azurite: %w\n%s", err, out)
		}
		return nil
	})
}

func (e *environment) findNpm(ctx context.Context) (string, error) {
	if npm, err := exec.LookPath("npm"); err == nil {
		return npm, nil
	}
	if err := e.install(ctx, "nodejs", "npm"); err != nil {
		return "", err
	}
	return exec.LookPath("npm")
}
