package ask

import (
	"fmt"
	"reflect"

	"google.golang.org/protobuf/proto"
)

// Reply returns an answer as a reply. An answer that is not a protobuf message is an error, because
// it would not have arrived from another member. The text of the error begins with pkg.
func Reply(pkg string, answer any) (proto.Message, error) {
	switch a := answer.(type) {
	case proto.Message:
		return a, nil
	case error: // %v, since an error of this module in a reply says nothing about this call
		return nil, fmt.Errorf("%s: the message was handled, but the reply is an error value "+
			"(%T: %v): only protobuf messages arrive from other members, so respond with one "+
			"that has the error", pkg, a, a)
	}
	return nil, fmt.Errorf("%s: the message was handled, but the reply is a %T: only protobuf "+
		"messages arrive from other members, so respond with one", pkg, answer)
}

// As returns reply as a Res, or err unchanged. The text of its own error begins with pkg.
func As[Res proto.Message](pkg string, reply proto.Message, err error) (res Res, _ error) {
	if err != nil {
		return res, err
	}
	res, ok := reply.(Res)
	if !ok {
		return res, fmt.Errorf("%s: the message was handled, but the reply is a %T, not a %v", pkg,
			reply, reflect.TypeFor[Res]())
	}
	return res, nil
}
