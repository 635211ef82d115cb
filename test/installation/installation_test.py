#!/usr/bin/env python3
"""Tests of what `meson install` puts where: the program, its manual and its completions.

Usage: installation_test.py BUILD_DIRECTORY
Prints TAP.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / 'qemu'))
from tap import Failure, Tap, check, check_equal  # noqa: E402

DOCUMENTS = {
    'share/man/man1/stackshot.1': ['manual'],
    'share/bash-completion/completions/stackshot': ['completion', 'bash'],
    'share/zsh/vendor-completions/_stackshot': ['completion', 'zsh'],
}


def output(*command, **more):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, **more)
    check(done.returncode == 0, f'{command} ended with {done.returncode}: {done.stderr}')
    return done.stdout


class Installed:
    def __init__(self, build, root):
        self.root = pathlib.Path(root)
        output('meson', 'install', '-C', build, '--destdir', root, '--no-rebuild', '--quiet')
        self.prefix = next(self.root.rglob('bin/stackshot')).parent.parent
        self.program = str(self.prefix / 'bin/stackshot')

    def verbs(self):
        listed = output(self.program, '--help').split('Subcommands:\n')[1].split('\n\n')[0]
        return re.findall(r'^  (\w+)', listed, re.M)

    def options(self, verb):
        """Names of the options that --help tells."""
        text = output(self.program, verb, '--help').split('Options:\n')[1].split('\n\n')[0]
        lines = re.findall(r'^  (-\S+)', text, re.M)
        return [name for line in lines for name in line.split(',')]

    def complete(self, *words):
        """What bash offers for the last of the words."""
        script = (
            'compopt() { :; }; . "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
            '_stackshot; printf "%s\\n" "${COMPREPLY[@]}"'
        )
        completion = self.prefix / 'share/bash-completion/completions/stackshot'
        offered = output('bash', '-c', script, 'bash', str(completion), 'stackshot', *words)
        return offered.split()


def files_are_where_debian_looks_for_them(installed):
    for place, arguments in DOCUMENTS.items():
        check_equal((installed.prefix / place).read_text(), output(installed.program, *arguments),
                    place)


def the_manual_keeps_the_rules_of_man(installed):
    page = installed.prefix / 'share/man/man1/stackshot.1'
    done = subprocess.run(['mandoc', '-Tlint', '-Wwarning', str(page)], capture_output=True,
                          text=True)
    # A page made at each build has no date.
    wrong = [line for line in done.stdout.splitlines() if 'missing date' not in line]
    check(not wrong, '\n'.join(wrong))


def the_manual_has_every_command_and_option(installed):
    page = installed.prefix / 'share/man/man1/stackshot.1'
    text = output('mandoc', '-Tascii', '-Owidth=300', str(page))
    text = re.sub('.\b', '', text)
    for verb in installed.verbs():
        section = re.search(rf'^   {verb}\n(.*?)(^   \w|^\w)', text, re.M | re.S)
        check(section, f'{verb} is not in the manual')
        for option in installed.options(verb):
            if option not in ('-h', '--help'):
                check(re.search(rf'(?<![\w-]){option}\b', section[1]),
                      f'{verb} {option} is not in the manual')


def the_manual_has_every_exit_status(installed):
    page = (installed.prefix / 'share/man/man1/stackshot.1').read_text()
    told = output(installed.program, '--help').split('Exit status:\n')[1].splitlines()
    told = [re.split(r'\s+', line.strip(), maxsplit=1) for line in told if line.startswith('  ')]
    check(len(told) >= 8, f'{told}')
    for status, meaning in told:
        line = re.escape(meaning).replace(r'\-', r'\\?-')
        check(re.search(rf'^  {status} +{line}', page, re.M), f'{status} is not in the manual')


def bash_completes(installed):
    check_equal(installed.complete('de'), ['decode', 'decompress'], 'commands')
    check(set(installed.verbs()) <= set(installed.complete('')), 'a command is not offered')
    for verb in installed.verbs():
        offered = installed.complete(verb, '-')
        check_equal(sorted(offered), sorted(installed.options(verb)), f'options of {verb}')
    check_equal(installed.complete('analyze', '--format', ''), ['text', 'json', 'dot'], 'values')
    check_equal(installed.complete('analyze', '--format', '=', 'j'), ['json'], 'values behind =')
    check_equal(installed.complete('completion', 'z'), ['zsh'], 'a word')
    check(str(installed.program) in installed.complete('report', installed.program[:-1]), 'files')
    check(installed.complete('verify', '--generation', '') == [], 'a number is not completed')


def zsh_completes(installed):
    """The functions that complete are called with specifications; those are looked at."""
    completion = installed.prefix / 'share/zsh/vendor-completions/_stackshot'
    output('zsh', '-n', str(completion))
    for verb in installed.verbs():
        script = (
            '_arguments() { print -rl -- "$@"; [[ $1 != -C ]] || { state=arguments; return 1; }; }; '
            f'words=({verb}); source "$1"'
        )
        text = output('zsh', '-f', '-c', script, 'zsh', str(completion))
        for option in installed.options(verb):
            check(re.search(rf'(^|\)|\*){option}[=+\[]', text, re.M),
                  f'{verb} {option} is not completed: {text}')


def the_image_is_found(installed):
    images = list(installed.prefix.glob('share/stackshot-unikernel/*'))
    check_equal(sorted(image.name for image in images), ['kernel.elf', 'kernel8.img'], 'the image')
    check('kernel8.img' in output(installed.program, 'run', '--help'), 'run does not name it')


def main():
    tap = Tap()
    with tempfile.TemporaryDirectory() as root:
        try:
            installed = Installed(sys.argv[1], root)
        except Failure as failure:
            print(f'Bail out! {failure}')
            return 1
        tap.case('program and documents lie where Debian looks for them',
                 files_are_where_debian_looks_for_them, installed)
        tap.case('the manual keeps the rules of man(7)', the_manual_keeps_the_rules_of_man,
                 installed)
        tap.case('the manual has every command and every option',
                 the_manual_has_every_command_and_option, installed)
        tap.case('the manual has every exit status', the_manual_has_every_exit_status, installed)
        tap.case('bash completes commands, options, values and files', bash_completes, installed)
        tap.case('zsh completes every option', zsh_completes, installed)
        if (pathlib.Path(sys.argv[1]) / 'kernel8.img').exists():
            tap.case('the image is installed with the program', the_image_is_found, installed)
    return tap.end()


if __name__ == '__main__':
    sys.exit(main())
