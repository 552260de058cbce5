package guard

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// The guard adds two fields to Proto.Actor's messages; Proto.Actor ignores fields that it does not
// know. nonceField is in the first message of each end. If the cluster has a secret, sealField is
// at the very end of every message.
const (
	nonceField protowire.Number = 15001
	sealField  protowire.Number = 15002

	sealSize = 16
	// sealLength is the length of the whole field.
	sealLength = 3 + 1 + sealSize
)

// nonce is a number chosen by one end of a stream and used once.
type nonce [16]byte

func newNonce() (n nonce) {
	_, _ = rand.Read(n[:]) // never fails
	return n
}

func appendNonce(b []byte, n nonce) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, nonceField, protowire.BytesType), n[:])
}

// nonceOf returns the nonce in a message.
func nonceOf(msg []byte) (n nonce, ok bool) {
	err := fields(msg, func(number protowire.Number, value []byte) error {
		if number == nonceField && len(value) == len(n) {
			ok = true
			copy(n[:], value)
		}
		return nil
	})
	return n, ok && err == nil
}

// Bounds of a secret in bytes, and the number of secrets in a file: two, while one replaces the
// other.
const (
	minSecret  = 16
	maxSecret  = 1024
	maxSecrets = 2
)

// secret is the secret shared by the members of a cluster. It is reloaded when its file has
// changed.
type secret struct {
	file    string
	process *Process

	looked looked // guards the following
	info   os.FileInfo
	now    [][]byte
}

func newSecret(file string, p *Process) (*secret, error) {
	s := &secret{file: file, process: p}
	if _, err := gmac(make([]byte, sha256.Size)); err != nil {
		return nil, fmt.Errorf("secrets cannot be used: %w", err)
	}
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if s.now, err = readSecrets(file); err != nil {
		return nil, err
	}
	s.info, s.looked.at = info, time.Now()
	return s, nil
}

// secrets returns the secrets in the file. Streams begin with the first one.
func (s *secret) secrets() [][]byte {
	s.looked.mu.Lock()
	defer s.looked.mu.Unlock()
	if !s.looked.dueLocked(time.Now()) {
		return s.now
	}
	info, err := os.Stat(s.file)
	if err == nil && same([]os.FileInfo{info}, []os.FileInfo{s.info}) {
		return s.now
	}
	var read [][]byte
	if err == nil {
		read, err = readSecrets(s.file)
	}
	if err != nil {
		s.process.logger().Warn("secret cannot be read; the previous one stays in use",
			slog.Any("error", err))
		return s.now
	}
	s.info, s.now = info, read
	s.process.logger().Info("secret read again", slog.Int("secrets", len(read)))
	return s.now
}

// readSecrets reads one secret per line.
func readSecrets(file string) (out [][]byte, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
		case len(line) < minSecret || len(line) > maxSecret:
			return nil, fmt.Errorf("%s: a secret has %d bytes, it must have from %d to %d", file,
				len(line), minSecret, maxSecret)
		case len(out) == maxSecrets:
			return nil, fmt.Errorf("%s: more than %d secrets", file, maxSecrets)
		default:
			out = append(out, []byte(line))
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: holds no secret", file)
	}
	return out, nil
}

// channel identifies a stream: the cluster, the end that opened it, and the other end.
type channel struct{ cluster, from, to string }

// seal authenticates the messages of one direction of one stream. The authenticated data includes
// the number of the message, and the key depends on the stream, so no message can be repeated, left
// out, sent in the other direction or moved to another stream.
//
// It is GMAC, which is AES-GCM without a plaintext: it takes a fifth of the time of HMAC-SHA-256.
// GMAC must never use a nonce twice with one key. The nonce is the number of the message, which
// only grows, and each end contributes a random nonce to the key of what it sends.
type seal struct {
	mac  cipher.AEAD
	next uint64
	sums []byte // the last sum; its memory is reused
}

// newSeal derives the key of a direction from the secret, the stream and the nonces of its ends.
func newSeal(secret []byte, direction string, c channel, nonces ...nonce) *seal {
	var salt []byte
	for _, n := range nonces {
		salt = append(salt, n[:]...)
	}
	info := []byte("concord/2 " + direction)
	for _, s := range []string{c.cluster, c.from, c.to} {
		info = binary.BigEndian.AppendUint32(info, uint32(len(s)))
		info = append(info, s...)
	}
	key, err := hkdf.Key(sha256.New, secret, salt, string(info), sha256.Size)
	if err != nil {
		panic(err) // only for an invalid length, which is a constant
	}
	mac, err := gmac(key)
	if err != nil {
		panic(err) // newSecret has tried it
	}
	return &seal{mac: mac}
}

// gmac returns the MAC with a key. It fails only where the process may not use GCM with its own
// nonces, as with GODEBUG=fips140=only.
func gmac(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// Directions.
const (
	begins    = "begins"    // the first message of the end that opens the stream
	onwards   = "onwards"   // the later messages of that end
	backwards = "backwards" // the messages of the other end
)

// sum returns the MAC of the next message. It is valid until the next call.
func (s *seal) sum(msg []byte) []byte {
	var number [12]byte
	binary.BigEndian.PutUint64(number[4:], s.next)
	s.sums = s.mac.Seal(s.sums[:0], number[:], nil, msg)
	return s.sums
}

// put appends the seal to a message.
func (s *seal) put(msg []byte) []byte {
	sum := s.sum(msg)
	s.next++
	return protowire.AppendBytes(protowire.AppendTag(msg, sealField, protowire.BytesType), sum)
}

var errSeal = errors.New("the seal is missing or wrong")

// check returns nil if a message ends with the seal for this stream, direction and number.
func (s *seal) check(msg []byte) error {
	if len(msg) < sealLength {
		return errSeal
	}
	body := msg[:len(msg)-sealLength]
	want := protowire.AppendBytes(protowire.AppendTag(nil, sealField, protowire.BytesType),
		s.sum(body))
	if subtle.ConstantTimeCompare(want, msg[len(body):]) != 1 {
		return errSeal
	}
	s.next++
	return nil
}
