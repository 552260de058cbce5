package guard

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
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
			return nil, fmt.Errorf("%s: a secret has %d bytes, it must have from %d to %d", file, len(line),
				minSecret, maxSecret)
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
type seal struct {
	mac  hash.Hash
	next uint64
}

// newSeal derives the key of a direction from the secret, the stream and the nonces of its ends.
func newSeal(secret []byte, direction string, c channel, nonces ...nonce) *seal {
	var salt []byte
	for _, n := range nonces {
		salt = append(salt, n[:]...)
	}
	info := []byte("concord/1 " + direction)
	for _, s := range []string{c.cluster, c.from, c.to} {
		info = binary.BigEndian.AppendUint32(info, uint32(len(s)))
		info = append(info, s...)
	}
	key, err := hkdf.Key(sha256.New, secret, salt, string(info), sha256.Size)
	if err != nil {
		panic(err) // only for an invalid length, which is a constant
	}
	return &seal{mac: hmac.New(sha256.New, key)}
}

// Directions.
const (
	begins    = "begins"    // the first message of the end that opens the stream
	onwards   = "onwards"   // the later messages of that end
	backwards = "backwards" // the messages of the other end
)

func (s *seal) sum(msg []byte) []byte {
	s.mac.Reset()
	s.mac.Write(binary.BigEndian.AppendUint64(nil, s.next))
	s.mac.Write(msg)
	return s.mac.Sum(nil)[:sealSize]
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
	if !hmac.Equal(want, msg[len(body):]) {
		return errSeal
	}
	s.next++
	return nil
}
