package supervisor

import (
	"reflect"
	"testing"

	"github.com/caarlos0/env/v11"
)

func TestDefaultsAreWhatTheTagsSay(t *testing.T) {
	want, err := env.ParseAsWithOptions[Config](env.Options{Environment: map[string]string{}, Prefix: Prefix})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(defaults, want) {
		t.Errorf("defaults are %+v, the tags say %+v", defaults, want)
	}
	command, err := env.ParseAsWithOptions[Command](env.Options{Environment: map[string]string{}, Prefix: Prefix})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(commandDefaults, command) {
		t.Errorf("defaults are %+v, the tags say %+v", commandDefaults, command)
	}
}
