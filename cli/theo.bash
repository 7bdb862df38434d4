# shellcheck shell=bash
# Bash completion for theo. Asks the program for its commands and options, so that both never differ.

# Files and folders that match the word, folders with a slash to go on from.
_theo_files() {
    local IFS=$'\n'
    mapfile -t COMPREPLY < <(compgen -f -- "$1")
    compopt -o filenames 2>/dev/null
}

_theo() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} theo=${COMP_WORDS[0]} command=${COMP_WORDS[1]}
    local name letter kind value rest
    COMPREPLY=()

    if [ "$COMP_CWORD" -eq 1 ] || { [ "$COMP_CWORD" -eq 2 ] && [ "$command" = help ]; }; then
        mapfile -t COMPREPLY < <(compgen -W "$("$theo" __options 2>/dev/null) help --version" -- "$word")
        return
    fi

    # --option=value arrives as three words, since = breaks words: complete the value as after a space.
    [ "$word" = "=" ] && word=
    [ "$before" = "=" ] && [ "$COMP_CWORD" -ge 3 ] && before=${COMP_WORDS[COMP_CWORD - 2]}

    local options=""
    while IFS=$'\t' read -r name letter kind value rest; do
        if [ "$before" = "$name" ] || [ "$before" = "-$letter" ]; then
            case $kind in
            flag) ;;
            choice) mapfile -t COMPREPLY < <(compgen -W "${value//|/ }" -- "$word"); return ;;
            folder)
                mapfile -t COMPREPLY < <(compgen -d -- "$word")
                compopt -o filenames 2>/dev/null
                return
                ;;
            file | text) _theo_files "$word"; return ;;
            size) mapfile -t COMPREPLY < <(compgen -W "480x640 native long:1024" -- "$word"); return ;;
            *) return ;;
            esac
        fi
        options+="$name "
    done < <("$theo" __options "$command" 2>/dev/null)

    if [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
    else
        _theo_files "$word"
    fi
}

complete -F _theo theo
